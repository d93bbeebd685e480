//! Completion of command lines. The shell's script runs this program, which completes commands, options and
//! their values, trace files, and the categories and providers of the programs that run.

use crate::args::Cli;
use crate::args::categories::Groups;
use crate::connection;
use clap::CommandFactory;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use ktrace_provider::{categories, metrics};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;
use trace_protocol::controller::{ProviderInfo, ProvisionerRequest, ProvisionerResponse};

/// The shell's script sets it to the name of the shell.
const VARIABLE: &str = "TRACE_COMPLETE";
/// How long a manager may take to answer; the manager itself waits up to a second for programs.
const ANSWER_WAIT: Duration = Duration::from_millis(1500);
/// The endings of trace names. Compressed files may be something else; they are few.
const ENDINGS: [&str; 8] = ["fxt", "json", "pftrace", "perfetto-trace", "gz", "zst", "html", "ftrace"];

/// Answers the script of a shell, if that runs this program, and then ends the process.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Bash splits words at colons and equals signs, which categories and options contain: the script joins them
/// again, and removes the part before the last of them from the answers.
const BASH: &str = r#"_trace_complete_NAME() {
    local line=$COMP_LINE words=() current=0 i rest
    for i in "${!COMP_WORDS[@]}"; do
        rest=${line#"${line%%[![:blank:]]*}"}
        if [[ $i == 0 || $rest != "$line" || -z $line ]]; then
            words+=("${COMP_WORDS[i]}")
        else
            words[${#words[@]}-1]+=${COMP_WORDS[i]}
        fi
        line=${rest#"${COMP_WORDS[i]}"}
        if [[ $i == "$COMP_CWORD" ]]; then
            current=$((${#words[@]} - 1))
            break
        fi
    done
    local word=${words[current]} IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX=$current VARIABLE=bash "NAME" -- "${words[@]}"))
    local before=${word%"${word##*[:=]}"}
    if [[ -n $before ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    elif [[ ${#COMPREPLY[@]} -gt 0 && -e ${COMPREPLY[0]} ]]; then
        compopt -o filenames 2> /dev/null
    fi
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} =~ [=/:]$ ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -o bashdefault -F _trace_complete_NAME NAME
"#;

/// The script of a shell, for a command of this name.
pub fn script(shell: &str, name: &str) -> io::Result<Vec<u8>> {
    if shell == "bash" {
        return Ok(BASH.replace("VARIABLE", VARIABLE).replace("NAME", name).into_bytes());
    }
    let mut script = Vec::new();
    match Shells::builtins().completer(shell) {
        Some(completer) => completer.write_registration(VARIABLE, name, name, name, &mut script)?,
        None => return Err(io::Error::other("unknown shell")),
    }
    Ok(script)
}

/// Directories, and files with names of traces.
pub fn traces(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_trace = |path: &Path| {
        let ending = path.extension().and_then(OsStr::to_str);
        path.is_dir() || ending.is_some_and(|ending| ENDINGS.contains(&ending))
    };
    let mut candidates = PathCompleter::any().filter(is_trace).complete(current);
    // The current directory is no trace.
    candidates.retain(|candidate| candidate.get_value() != ".");
    candidates
}

/// Completes the last entry of a list of categories, which may begin with a minus.
pub fn category_list(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    let start = current.rfind(',').map_or(0, |comma| comma + 1);
    let start = start + usize::from(current[start..].starts_with('-'));
    let (before, entry) = current.split_at(start);
    let known = known_categories();
    let candidates = known.iter().filter(|(name, _)| name.starts_with(entry));
    candidates.map(|(name, help)| candidate(format!("{before}{name}"), help)).collect()
}

/// Names of programs, each with the colon that precedes the size of its buffer.
pub fn provider_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else {
        return Vec::new();
    };
    let mut names: Vec<String> = providers().into_iter().map(|provider| provider.name).collect();
    names.sort();
    names.dedup();
    let names = names.into_iter().filter(|name| name.starts_with(current) && is_plain(name));
    names.map(|name| candidate(format!("{name}:"), "")).collect()
}

fn candidate(text: String, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(text).help((!help.is_empty()).then(|| help.to_owned().into()))
}

/// Names and descriptions: of running programs, of the kernel, and groups.
fn known_categories() -> Vec<(String, String)> {
    let request = ProvisionerRequest::GetKnownCategories;
    let known = match ask(request) {
        Some(ProvisionerResponse::KnownCategories(known)) => known.listed,
        _ => Vec::new(),
    };
    let mut all: Vec<(String, String)> =
        known.into_iter().map(|category| (category.name, category.description)).collect();
    let of_kernel = categories::GROUPS.iter().map(|group| (group.name, group.description));
    all.extend(
        of_kernel
            .chain(metrics::CATEGORIES)
            .map(|(name, description)| (name.to_owned(), description.to_owned())),
    );
    all.extend(Groups::built_in().iter().map(|(name, members)| (format!("#{name}"), members.join(", "))));
    all.retain(|(name, _)| is_plain(name));
    all.sort();
    all.dedup_by(|one, other| one.0 == other.0);
    all
}

fn providers() -> Vec<ProviderInfo> {
    match ask(ProvisionerRequest::GetProviders) {
        Some(ProvisionerResponse::Providers { listed, .. }) => listed,
        _ => Vec::new(),
    }
}

/// Asks the manager, if one runs.
fn ask(request: ProvisionerRequest<zx_sim::Handle>) -> Option<ProvisionerResponse> {
    connection::find().ok()??.ask_for(request, Some(ANSWER_WAIT)).ok()
}

/// Programs choose their names, and completions are typed into a shell.
fn is_plain(name: &str) -> bool {
    let is_plain = |char: char| char.is_alphanumeric() || ":._-#/+@".contains(char);
    !name.is_empty() && name.chars().all(is_plain)
}

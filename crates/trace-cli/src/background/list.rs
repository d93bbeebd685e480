//! `trace list-programs`, `trace list-categories` and `trace list-category-groups`.

use crate::args::record::Recording;
use crate::args::values::ConfigFile;
use crate::args::{Groups, Machinery};
use crate::connection::own_manager;
use crate::connection::{self, Connection};
use crate::record::absence;
use crate::record::doctor::self_trace::CATEGORY;
use crate::settings::Settings;
use crate::shell::exit::Failure;
use crate::shell::json::{self, Answer};
use crate::shell::stdio::{print_folded, say};
use serde_json::{Map, Value};
use trace_analysis::counted::Counted;
use trace_client::Providers;
use trace_format::shown::Shown;
use trace_protocol::categories::{Silent, Unlisted};
use trace_protocol::controller::ProviderInfo;
use zx_sim::process::{is_stopped, start_time};

/// The kind of problem that a program is which does not answer.
const SILENT: &str = "silent";

/// Lists the programs that can be recorded.
pub fn providers(options: &Machinery) -> Result<(), Failure> {
    let mut connection = connection::open()?;
    let Providers { listed, left_out } = connection.settled_providers()?;
    if left_out > 0 {
        say!("trace: {left_out} more programs are registered; the list has the {} oldest", listed.len());
    }
    let mut providers: Vec<(ProviderInfo, Option<u32>)> =
        listed.into_iter().map(|provider| (provider, None)).collect();
    let recorded_by =
        |(provider, own): &(ProviderInfo, Option<u32>)| own.map(u64::from).or(provider.recorded_by);
    //= docs/recording.md#several-recordings-at-once
    for (process, mut own) in own_manager::running() {
        // A recording may end meanwhile.
        let listed = own.providers().map(|providers| providers.listed).unwrap_or_default();
        providers.extend(listed.into_iter().map(|provider| (provider, Some(process))));
    }
    if options.is_json() {
        let list: Vec<_> = providers
            .iter()
            .map(|listed| {
                let (provider, _) = listed;
                serde_json::json!({
                    "id": provider.id,
                    "pid": provider.pid,
                    "started": start_time(provider.pid),
                    "name": provider.name,
                    "recorded_by": recorded_by(listed),
                    "recorded_by_started": recorded_by(listed).and_then(start_time),
                })
            })
            .collect();
        Answer::of(list.into()).bare_if(options.is_bare()).give();
        return Ok(());
    }
    let looked: Vec<_> = connection::directories().iter().map(|path| path.display().to_string()).collect();
    say!("trace: manager in {} (looked in {})", connection.directory().display(), looked.join(", "));
    if providers.is_empty() {
        say!("trace: {}", absence::cause(connection.directory(), None));
    }
    let mut text = String::from("Programs:\n");
    for (provider, own) in &providers {
        let recording = match (own, &provider.recording) {
            (Some(pid), _) => format!(", only in the recording of pid {pid}"),
            (None, Some(recording)) => format!(", recorded by {}", Shown(recording)),
            (None, None) => String::new(),
        };
        text.push_str(&format!("  {} (pid {}){recording}\n", Shown(&provider.name), provider.pid));
    }
    print_folded(&text)
}

/// Lists the categories that running programs know.
pub fn categories(options: &Machinery) -> Result<(), Failure> {
    let mut connection = connection::open()?;
    connection.settled_providers()?;
    let known = connection.known_categories()?;
    let silent = report_silent(&mut connection, &known.silent)?;
    report_unlisted(&known.beyond_limit, "not listed, the limit being 5000");
    report_unlisted(
        &known.too_long,
        "not listed, their names being longer than 100 bytes (NAME* selects them)",
    );
    let mut categories = known.listed;
    // Of the doctor's programs, which are this executable.
    categories.retain(|category| category.name != CATEGORY);
    if options.is_json() {
        let list: Vec<_> = categories
            .iter()
            .map(|category| serde_json::json!({"name": category.name, "description": category.description}))
            .collect();
        Answer::of(list.into()).bare_if(options.is_bare()).give();
        json::add(Vec::new(), silent);
        return Ok(());
    }
    if categories.is_empty() && !silent.is_empty() {
        return Ok(());
    }
    if categories.is_empty() {
        say!("trace: no program that can be recorded is running");
        return Ok(());
    }
    let mut text = String::from("Known categories\n");
    for category in &categories {
        match category.description.as_str() {
            "" => text.push_str(&format!("  {}\n", Shown(&category.name))),
            description => {
                text.push_str(&format!("  {}: {}\n", Shown(&category.name), Shown(description)));
            }
        }
    }
    print_folded(&text)
}

/// Names the programs that have not answered, and returns them as problems.
fn report_silent(connection: &mut Connection, silent: &Silent) -> Result<Vec<Value>, Failure> {
    let mut problems = Vec::new();
    if silent.providers.is_empty() {
        return Ok(problems);
    }
    // A program that has ended meanwhile is none that does not answer.
    let listed = connection.providers()?.listed;
    for provider in listed.iter().filter(|provider| silent.providers.contains(&provider.id)) {
        let why = if is_stopped(provider.pid) == Some(true) { "it is stopped" } else { "it does not answer" };
        let (name, pid) = (Shown(&provider.name), provider.pid);
        let text = format!("the categories of {name} (pid {pid}) are not listed: {why}");
        say!("trace: {text}");
        problems.push(json::problem(SILENT, Some(1), Some(&text), None));
    }
    if silent.beyond_limit > 0 {
        let text = format!("the categories of {} more programs are not listed", silent.beyond_limit);
        say!("trace: {text}");
        problems.push(json::problem(SILENT, Some(silent.beyond_limit), Some(&text), None));
    }
    Ok(problems)
}

/// Reports categories that are not in the list.
fn report_unlisted(unlisted: &Unlisted, what: &str) {
    let Unlisted { count, names } = unlisted;
    if *count > 0 {
        let more = if *count > names.len() as u64 { ", …" } else { "" };
        say!("trace: {} {what}: {}{more}", Counted(*count, "categories"), Shown(&names.join(", ")));
    }
}

/// Categories in a line of the table of groups.
const CATEGORIES_IN_A_LINE: usize = 7;

/// Lists the groups that `#name` stands for.
pub fn category_groups(options: &Groups) -> Result<(), Failure> {
    let settings = Settings::resolve(Recording::default(), options.config.as_deref().map(ConfigFile::from))?;
    if options.machinery.is_json() {
        let map: Map<_, _> =
            settings.groups.iter().map(|(name, members)| (name.to_owned(), members.into())).collect();
        Answer::of(map.into()).bare_if(options.machinery.is_bare()).give();
        return Ok(());
    }
    let width = settings.groups.iter().map(|(name, _)| name.len() + 1).max().unwrap_or(0).max("Name".len());
    let mut text = format!("{:<width$}  Categories\n", "Name");
    for (name, members) in settings.groups.iter() {
        for (line, part) in members.chunks(CATEGORIES_IN_A_LINE).enumerate() {
            let name = if line == 0 { format!("#{}", Shown(name)) } else { String::new() };
            text.push_str(&format!("{name:<width$}  {}\n", Shown(&part.join(", "))));
        }
    }
    print_folded(&text)
}

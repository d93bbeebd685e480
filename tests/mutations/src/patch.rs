//! Patches: what cargo-mutants does not make, located by the path of an item and a pattern of tokens inside
//! it.

use crate::Edit;
use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use syn::{ImplItem, Item, TraitItem, Type};

/// `tests/patches.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Identifiers of Rust and its libraries that patterns may have beside metavariables.
    std: BTreeSet<String>,
    patch: Vec<Patch>,
}

/// One way to break the code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    name: String,
    /// `crate_name::module::Type::function`, where the last is a function, a constant, a type or a macro.
    item: String,
    /// Tokens in it. `$a` is any token or bracketed group, `$$a` the shortest row of them.
    from: String,
    to: String,
    /// Which of several places, from 1. Without it there is one place.
    nth: Option<usize>,
    /// Arguments of `cargo test`; the last is the name of a test, or the beginning of several.
    test: Vec<String>,
}

/// The list, and the edits that its patches are in this tree; or why they are none.
pub fn edits(root: &Path) -> Result<Vec<Edit>, String> {
    let text = fs::read_to_string(root.join("tests/patches.toml")).map_err(|error| error.to_string())?;
    let list: List = toml::from_str(&text).map_err(|error| error.to_string())?;
    let edit = |patch: Patch| {
        let why = |reason: String| format!("{}: {reason}", patch.name);
        patch.check_names(&list.std).map_err(why)?;
        let (file, range, text) = patch.locate(root).map_err(why)?;
        Ok(Edit {
            name: patch.name,
            file,
            range,
            text,
            tests: vec![patch.test],
            may_survive: false,
            is_patch: true,
        })
    };
    let (edits, errors): (Vec<_>, Vec<_>) = list.patch.into_iter().map(edit).partition(Result::is_ok);
    match errors.is_empty() {
        true => edits.into_iter().collect(),
        false => Err(errors.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("\n")),
    }
}

impl Patch {
    /// Renames of anything but its item leave a patch as it is, as it has no other name of ours.
    fn check_names(&self, std: &BTreeSet<String>) -> Result<(), String> {
        let own: BTreeSet<&str> = self.item.split("::").collect();
        for text in [&self.from, &self.to] {
            let tokens = parse(text)?;
            for name in names(&tokens) {
                let is_known = std.contains(&name) || own.contains(name.as_str());
                if !is_known && syn::parse_str::<syn::Ident>(&name).is_ok() {
                    return Err(format!("{name} is neither its item nor in `std`"));
                }
            }
        }
        Ok(())
    }

    fn locate(&self, root: &Path) -> Result<(PathBuf, Range<usize>, String), String> {
        let path: Vec<&str> = self.item.split("::").collect();
        let (file, inner) = file_of(root, &path).ok_or("there is no such file")?;
        let source = fs::read_to_string(root.join(&file)).map_err(|error| error.to_string())?;
        let parsed = syn::parse_file(&source).map_err(|error| error.to_string())?;
        let items = find(&parsed.items, inner);
        if items.is_empty() {
            return Err(format!("{} has no such item", file.display()));
        }
        let pattern = trees(parse(&self.from)?);
        let mut places = Vec::new();
        for item in items {
            search(&pattern, &trees(item), &source, &mut places);
        }
        places.sort_by_key(|place: &Place| place.range.start);
        let number = match (self.nth, places.len()) {
            (None, 1) => 0,
            (Some(nth), found) if (1..=found).contains(&nth) => nth - 1,
            _ => {
                let lines =
                    places.iter().map(|place| source[..place.range.start].lines().count().to_string());
                let lines = lines.collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "its pattern has not one place in {}, but lines {lines}",
                    file.display()
                ));
            }
        };
        let place = places.swap_remove(number);
        let text = place.filled(&self.to, &source);
        Ok((file, place.range, text))
    }
}

fn parse(text: &str) -> Result<TokenStream, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

/// Identifiers that are no metavariables.
fn names(tokens: &TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_variable = false;
    for token in tokens.clone() {
        match &token {
            TokenTree::Ident(name) if !is_variable => names.push(name.to_string()),
            TokenTree::Group(group) => names.extend(self::names(&group.stream())),
            _ => {}
        }
        is_variable = is_dollar(&token);
    }
    names
}

fn is_dollar(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == '$')
}

/// The file in which a path's item is, and the rest of the path.
fn file_of<'a>(root: &Path, path: &'a [&'a str]) -> Option<(PathBuf, &'a [&'a str])> {
    let (package, modules) = path.split_first()?;
    let source = Path::new("crates").join(package.replace('_', "-")).join("src");
    let inner = (1..modules.len()).rev().map(|depth| {
        let file = source.join(modules[..depth].join("/")).with_extension("rs");
        (file, &modules[depth..])
    });
    let roots = ["lib.rs", "main.rs"].map(|name| (source.join(name), modules));
    inner.chain(roots).find(|(file, _)| root.join(file).is_file())
}

/// What has this path: several where it is there for several configurations or traits.
fn find(items: &[Item], path: &[&str]) -> Vec<TokenStream> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for item in items {
        let is = |name: &dyn ToTokens| name.to_token_stream().to_string() == *first;
        let is_last = rest.is_empty();
        match item {
            Item::Mod(module) if is(&module.ident) => {
                found.extend(module.content.iter().flat_map(|(_, items)| find(items, rest)));
            }
            Item::Impl(block) => {
                let Type::Path(of) = &*block.self_ty else { continue };
                if of.path.segments.last().is_some_and(|last| is(&last.ident)) {
                    let of_name = |item: &&ImplItem| match item {
                        ImplItem::Fn(function) => rest == [function.sig.ident.to_string()],
                        ImplItem::Const(constant) => rest == [constant.ident.to_string()],
                        _ => false,
                    };
                    found.extend(block.items.iter().filter(of_name).map(ToTokens::to_token_stream));
                }
            }
            Item::Trait(block) if is(&block.ident) => {
                let of_name = |item: &&TraitItem| match item {
                    TraitItem::Fn(function) => rest == [function.sig.ident.to_string()],
                    _ => false,
                };
                found.extend(block.items.iter().filter(of_name).map(ToTokens::to_token_stream));
            }
            Item::Fn(function) if is_last && is(&function.sig.ident) => found.push(item.to_token_stream()),
            Item::Const(constant) if is_last && is(&constant.ident) => found.push(item.to_token_stream()),
            Item::Static(fixed) if is_last && is(&fixed.ident) => found.push(item.to_token_stream()),
            Item::Struct(of) if is_last && is(&of.ident) => found.push(item.to_token_stream()),
            Item::Macro(rules) if is_last && rules.ident.as_ref().is_some_and(|name| is(name)) => {
                found.push(item.to_token_stream());
            }
            _ => {}
        }
    }
    found
}

/// Where a pattern is found, and what its variables stand for.
struct Place {
    range: Range<usize>,
    bound: BTreeMap<String, Range<usize>>,
}

impl Place {
    /// What is put there.
    fn filled(&self, to: &str, source: &str) -> String {
        // Longer names first, as `$a` begins `$ab`.
        self.bound.iter().rev().fold(to.to_owned(), |text, (name, bound)| {
            let text = text.replace(&format!("$${name}"), &source[bound.clone()]);
            text.replace(&format!("${name}"), &source[bound.clone()])
        })
    }
}

fn search(pattern: &[TokenTree], tokens: &[TokenTree], source: &str, places: &mut Vec<Place>) {
    for (number, token) in tokens.iter().enumerate() {
        let mut bound = BTreeMap::new();
        if let Some(rest) = matched(pattern, &tokens[number..], false, source, &mut bound) {
            let last = &tokens[tokens.len() - rest - 1];
            places.push(Place { range: start(token)..last.span().byte_range().end, bound });
        }
        if let TokenTree::Group(group) = token {
            search(pattern, &trees(group.stream()), source, places);
        }
    }
}

fn start(token: &TokenTree) -> usize {
    token.span().byte_range().start
}

/// How many tokens are left behind those that the pattern matches; `is_whole`: there must be none.
fn matched(
    pattern: &[TokenTree],
    tokens: &[TokenTree],
    is_whole: bool,
    source: &str,
    bound: &mut BTreeMap<String, Range<usize>>,
) -> Option<usize> {
    let Some((first, rest)) = pattern.split_first() else {
        return (!is_whole || tokens.is_empty()).then_some(tokens.len());
    };
    if is_dollar(first) {
        let is_row = rest.first().is_some_and(is_dollar);
        let (name, rest) = rest[usize::from(is_row)..].split_first()?;
        let lengths = if is_row { 0..=tokens.len() } else { 1..=1 };
        for length in lengths.take_while(|length| *length <= tokens.len()) {
            let range = match &tokens[..length] {
                [] => 0..0,
                [only] => start(only)..only.span().byte_range().end,
                [first, .., last] => start(first)..last.span().byte_range().end,
            };
            let mut tried = bound.clone();
            let before = tried.insert(name.to_string(), range.clone());
            if before.is_some_and(|before| source[before] != source[range]) {
                continue;
            }
            if let Some(left) = matched(rest, &tokens[length..], is_whole, source, &mut tried) {
                *bound = tried;
                return Some(left);
            }
        }
        return None;
    }
    let (token, others) = tokens.split_first()?;
    let is_same = match (first, token) {
        (TokenTree::Group(wanted), TokenTree::Group(found)) => {
            wanted.delimiter() == found.delimiter()
                && matched(&trees(wanted.stream()), &trees(found.stream()), true, source, bound).is_some()
        }
        (TokenTree::Punct(wanted), TokenTree::Punct(found)) => {
            // What is joined here is one operator, of which the pattern must not have the first half alone.
            let is_part = found.spacing() == Spacing::Joint && wanted.spacing() == Spacing::Alone;
            wanted.as_char() == found.as_char() && !is_part
        }
        (TokenTree::Ident(_), TokenTree::Ident(_)) | (TokenTree::Literal(_), TokenTree::Literal(_)) => {
            first.to_string() == token.to_string()
        }
        _ => false,
    };
    if is_same { matched(rest, others, is_whole, source, bound) } else { None }
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "struct A; impl A { fn f(&self) { if a <= b { self.x.store(g(1, 2), Release); } } }";

    fn found(from: &str, to: &str) -> Vec<String> {
        let file = syn::parse_file(SOURCE).unwrap();
        let mut places = Vec::new();
        for item in find(&file.items, &["A", "f"]) {
            search(&trees(parse(from).unwrap()), &trees(item), SOURCE, &mut places);
        }
        places.iter().map(|place| place.filled(to, SOURCE)).collect()
    }

    #[test]
    fn variables_stand_for_what_is_there() {
        assert_eq!(
            found("self.$a.store($$b, Release)", "self.$a.store($$b, Relaxed)"),
            ["self.x.store(g(1, 2), Relaxed)"]
        );
        assert_eq!(found("$a <= $b", "$b <= $a"), ["b <= a"]);
    }

    #[test]
    fn half_an_operator_and_half_a_bracket_are_not_found() {
        assert_eq!(found("$a < $b", ""), [""; 0]);
        assert_eq!(found("self.$a.store($b)", ""), [""; 0]);
    }

    #[test]
    fn names_of_ours_are_refused() {
        let [name, from, to, item] =
            ["a name", "$a.store($b, Relaxed)", "$a.own($b)", "a::b::c"].map(str::to_owned);
        let patch = Patch { name, item, from, to, nth: None, test: Vec::new() };
        let std = ["store", "Relaxed"].map(str::to_owned);
        assert_eq!(patch.check_names(&std.into()), Err("own is neither its item nor in `std`".to_owned()));
    }
}

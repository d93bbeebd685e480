//! Groups of categories, and the categories of each program.

use crate::args::bad_value::BadValue;
use std::collections::{BTreeMap, BTreeSet};
use trace_protocol::controller::ProviderSpec;

/// Groups by name, without the `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(BTreeMap<String, Vec<String>>);

/// The categories for all programs, and for single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For all; none means all categories.
    pub session: Vec<String>,
    /// By program.
    pub providers: BTreeMap<String, Vec<String>>,
}

impl Groups {
    /// The built-in groups.
    pub fn built_in() -> Self {
        let default = [
            "app",
            "benchmark",
            "gfx",
            "input",
            "kernel:meta",
            "kernel:sched",
            "memory:kernel",
            "net",
            "storage",
            "system_metrics",
        ];
        Self(BTreeMap::from([("default".to_owned(), default.map(str::to_owned).to_vec())]))
    }

    /// Adds those of a file. The error has the name of the group.
    pub fn add(&mut self, groups: BTreeMap<String, Vec<String>>) -> Result<(), (String, String)> {
        for (name, entries) in groups {
            if let Err(why) = check(&entries) {
                return Err((name, why.to_string()));
            }
            self.0.insert(name, entries);
        }
        Ok(())
    }

    /// The members of a group.
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// All groups; `default` comes last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        let is_default = |(name, _): &(&String, &Vec<String>)| name.as_str() == "default";
        let all = self.0.iter();
        all.clone()
            .filter(move |group| !is_default(group))
            .chain(all.filter(is_default))
            .map(|(name, members)| (name.as_str(), members.as_slice()))
    }

    pub fn to_toml(&self) -> toml::Table {
        let list = |members: &[String]| {
            toml::Value::Array(members.iter().cloned().map(toml::Value::String).collect())
        };
        self.0.iter().map(|(name, members)| (name.clone(), list(members))).collect()
    }

    /// Replaces groups by their members, each with the hyphen of its group.
    pub fn expanded(&self, entries: &[String]) -> Result<Vec<String>, BadValue> {
        let mut expanded = Vec::new();
        for entry in entries {
            let (sign, category) =
                entry.strip_prefix('-').map_or(("", entry.as_str()), |wanted| ("-", wanted));
            match category.strip_prefix('#') {
                Some(group) => {
                    let members = self.get(group).ok_or_else(|| self.no_such_group(group))?;
                    expanded.extend(members.iter().map(|member| format!("{sign}{member}")));
                }
                None => expanded.push(entry.clone()),
            }
        }
        Ok(expanded)
    }

    /// Expands groups and assigns each entry to its programs.
    pub fn plan(&self, entries: &[String]) -> Result<Plan, BadValue> {
        let mut session = BTreeSet::new();
        let mut providers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in entries {
            let (sign, wanted) = entry.strip_prefix('-').map_or(("", entry.as_str()), |wanted| ("-", wanted));
            let (provider, category) = scope(wanted);
            let expanded = self.expanded(&[format!("{sign}{category}")])?;
            match provider {
                Some(provider) => providers.entry(provider.to_owned()).or_default().extend(expanded),
                None => session.extend(expanded),
            }
        }
        if session.is_empty() && !providers.is_empty() {
            // An empty list would have all other programs record everything; an empty entry matches nothing.
            session.insert(String::new());
        }
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
        let providers = providers.into_iter().map(|(name, set)| (name, list(set))).collect();
        Ok(Plan { session: list(session), providers })
    }

    fn no_such_group(&self, name: &str) -> String {
        let known: Vec<_> = self.iter().map(|(name, _)| format!("#{name}")).collect();
        format!("no category group found for #{name}; there are {}", known.join(", "))
    }
}

/// Whether these can be the categories of a group.
fn check(entries: &[String]) -> Result<(), BadValue> {
    if entries.is_empty() {
        // A list of the group alone would be that of all categories.
        return Err("the group has no category".into());
    }
    for entry in entries {
        if entry.starts_with(['#', '-']) || entry.contains('/') {
            return Err(format!("{entry:?} is no category").into());
        }
        entry.parse::<crate::args::values::CategoryList>()?;
    }
    Ok(())
}

/// The program that an entry is for, and its category. A category of the kernel's may contain a path.
pub fn scope(entry: &str) -> (Option<&str>, &str) {
    match entry.split_once('/') {
        Some((provider, category)) if !provider.starts_with("kernel:") => (Some(provider), category),
        _ => (None, entry),
    }
}

impl Plan {
    /// The manager's settings for single programs, with the sizes of their buffers.
    pub fn provider_specs(&self, sizes: &[crate::args::values::ProviderBufferSize]) -> Vec<ProviderSpec> {
        let mut specs: BTreeMap<&str, ProviderSpec> = BTreeMap::new();
        let none = |name: &str| ProviderSpec {
            name: name.to_owned(),
            buffer_size_megabytes_hint: None,
            categories: Vec::new(),
        };
        for (name, categories) in &self.providers {
            specs.entry(name).or_insert_with(|| none(name)).categories.clone_from(categories);
        }
        // The last one for a name wins.
        for size in sizes {
            let spec = specs.entry(&size.name).or_insert_with(|| none(&size.name));
            spec.buffer_size_megabytes_hint = Some(size.size.0);
        }
        specs.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, members: &[&str]) -> BTreeMap<String, Vec<String>> {
        [(name.to_owned(), members.iter().map(ToString::to_string).collect())].into()
    }

    fn plan(entries: &[&str]) -> Plan {
        let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
        let mut groups = Groups::built_in();
        groups.add(group("mine", &["a", "b*"])).unwrap();
        groups.plan(&entries).unwrap()
    }

    #[test]
    fn groups_are_expanded_and_everything_is_sorted_once() {
        assert_eq!(plan(&["#mine", "z", "a"]).session, ["a", "b*", "z"]);
        assert_eq!(plan(&["*", "-#mine"]).session, ["*", "-a", "-b*"]);
        assert!(plan(&["#default"]).session.contains(&"kernel:sched".to_owned()));
        let error = Groups::built_in().plan(&["#x".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "no category group found for #x; there are #default");
    }

    #[test]
    fn what_is_for_one_program_goes_to_it_alone() {
        let found = plan(&["app", "one/fine", "one/#mine", "-two/noisy"]);
        assert_eq!(found.session, ["app"]);
        assert_eq!(found.providers["one"], ["a", "b*", "fine"]);
        assert_eq!(found.providers["two"], ["-noisy"]);
        // A path, and no program.
        assert_eq!(plan(&["kernel:uprobe:/bin/app:0x10"]).session, ["kernel:uprobe:/bin/app:0x10"]);
        // The others record nothing then.
        assert_eq!(plan(&["one/fine"]).session, [""]);
        assert_eq!(plan(&[]), Plan::default());
        let sizes = ["one:8", "three:16", "one:32"].map(|text| text.parse().unwrap());
        let specs = found.provider_specs(&sizes);
        let seen: Vec<_> = specs
            .iter()
            .map(|spec| (spec.name.as_str(), spec.buffer_size_megabytes_hint, spec.categories.len()))
            .collect();
        assert_eq!(seen, [("one", Some(32), 3), ("three", Some(16), 0), ("two", None, 1)]);
    }

    #[test]
    fn a_group_holds_categories_only() {
        let mut groups = Groups::built_in();
        for wrong in ["#other", "-x", "p/x", "a b"] {
            assert!(groups.add(group("g", &[wrong])).is_err(), "{wrong}");
        }
        let names: Vec<_> = groups.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["default"]);
    }
}

//! Which categories are recorded by lists of enabled and disabled ones, in Perfetto's order: exact names that
//! are enabled, exact names that are disabled, enabled patterns, disabled patterns. A category that none
//! matches is enabled. The entries of our list are all inclusions, then all exclusions.

use crate::tree::Wrong;

/// Matches every category that is not disabled by default.
const ALL: &str = "*";
const DISABLED_BY_DEFAULT: &str = "disabled-by-default-";

/// Enabled and disabled entries with their places.
#[derive(Debug, Default)]
pub struct Rules {
    /// Enabled ones.
    pub enabled: Vec<(usize, String)>,
    /// Disabled ones.
    pub disabled: Vec<(usize, String)>,
}

/// Entries of our list. Without inclusions, it is for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Names and prefixes that are recorded.
    pub included: Vec<String>,
    /// Names and prefixes that are not, without the hyphen.
    pub excluded: Vec<String>,
}

impl Rules {
    /// The rules of Chrome's lists: as soon as one category is included that is not disabled by default,
    /// others have to be included, too.
    pub fn of_chrome(included: Vec<(usize, String)>, excluded: Vec<(usize, String)>) -> Self {
        let mut disabled = excluded;
        if let Some((at, _)) = included.iter().find(|(_, name)| !name.starts_with(DISABLED_BY_DEFAULT)) {
            disabled.push((*at, ALL.to_owned()));
        }
        Self { enabled: included, disabled }
    }

    /// The same selection as entries of our list, each of which is checked.
    ///
    /// # Errors
    /// Of the check; or our list cannot select that.
    pub fn filter(&self, check: impl Fn(usize, &str) -> Result<(), Wrong>) -> Result<Filter, Wrong> {
        for (at, name) in self.enabled.iter().chain(&self.disabled) {
            check(*at, name)?;
        }
        let names = |list: &[(usize, String)]| list.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        let (enabled, disabled) = (names(&self.enabled), names(&self.disabled));
        let is_pattern = |name: &str| name.ends_with('*');
        let excluded_names = disabled.iter().filter(|name| !is_pattern(name) && !enabled.contains(name));
        let mut filter = Filter::default();
        if disabled.iter().any(|name| name == ALL) {
            // Nothing but what is enabled.
            filter.included.clone_from(&enabled);
            let is_of_pattern =
                |name: &&String| enabled.iter().any(|entry| is_pattern(entry) && covers(entry, name));
            filter.excluded.extend(excluded_names.filter(is_of_pattern).cloned());
        } else {
            let is_off = |name: &&String| name.starts_with(DISABLED_BY_DEFAULT);
            filter.included.push(ALL.to_owned());
            filter.included.extend(enabled.iter().filter(is_off).cloned());
            filter.excluded.extend(excluded_names.cloned());
            for (at, pattern) in self.disabled.iter().filter(|(_, name)| is_pattern(name)) {
                if enabled.iter().any(|entry| is_pattern(entry) && covers(entry, pattern)) {
                    continue;
                }
                if let Some(within) = enabled.iter().find(|entry| covers(pattern, entry)) {
                    let message = format!(
                        "{within:?} is enabled within {pattern:?}, which is disabled: a recording can have that \
                         only if everything else is disabled, too, by \"*\""
                    );
                    return Err(Wrong::new(*at, message));
                }
                filter.excluded.push(pattern.clone());
            }
        }
        filter.sort();
        Ok(filter)
    }
}

impl Filter {
    /// What one of two selections records.
    pub fn or(&self, other: &Self, at: usize) -> Result<Self, Wrong> {
        if self.included.is_empty() || other.included.is_empty() {
            return Ok(if self.included.is_empty() { other.clone() } else { self.clone() });
        }
        let mut both = Self { included: [&*self.included, &*other.included].concat(), excluded: Vec::new() };
        for (one, two) in [(self, other), (other, self)] {
            for name in &one.excluded {
                let is_excluded = two.excluded.iter().any(|entry| covers(entry, name));
                if !is_excluded && two.included.iter().any(|entry| covers(entry, name)) {
                    continue;
                }
                if !is_excluded && two.included.iter().any(|entry| covers(name, entry)) {
                    let message =
                        format!("one data source excludes {name:?}, and another one has a part of it");
                    return Err(Wrong::new(at, message));
                }
                both.excluded.push(name.clone());
            }
        }
        both.sort();
        Ok(both)
    }

    fn sort(&mut self) {
        for list in [&mut self.included, &mut self.excluded] {
            list.sort();
            list.dedup();
        }
    }

    /// Whether it has no entry.
    pub const fn is_nothing(&self) -> bool {
        self.included.is_empty()
    }

    /// Whether it records all categories but those that are excluded.
    pub fn has_all(&self) -> bool {
        self.included.iter().any(|entry| entry == ALL)
    }

    /// As entries of a list, for one program or for all.
    pub fn entries(&self, program: Option<&str>) -> Vec<String> {
        let program = program.map_or_else(String::new, |name| format!("{name}/"));
        let included = self.included.iter().map(|name| format!("{program}{name}"));
        included.chain(self.excluded.iter().map(|name| format!("-{program}{name}"))).collect()
    }
}

/// Whether an entry matches every category that another one matches.
fn covers(entry: &str, other: &str) -> bool {
    match entry.strip_suffix('*') {
        // What is disabled by default has to be named.
        Some("") => !other.starts_with(DISABLED_BY_DEFAULT),
        Some(prefix) => other.strip_suffix('*').unwrap_or(other).starts_with(prefix),
        None => entry == other,
    }
}

/// Checks that a name can be an entry of our list.
///
/// # Errors
/// It means something else there.
pub fn check_name(at: usize, name: &str) -> Result<(), Wrong> {
    if name.is_empty() {
        return Err(Wrong::new(at, "a category has no name"));
    }
    if let Some(letter) = name.chars().find(|letter| ['/', ',', '?'].contains(letter)) {
        return Err(Wrong::new(at, format!("category {name:?} cannot be selected: it contains {letter:?}")));
    }
    if let Some(letter) = name.chars().next().filter(|letter| ['#', '-'].contains(letter)) {
        return Err(Wrong::new(
            at,
            format!("category {name:?} cannot be selected: it begins with {letter:?}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any(_: usize, _: &str) -> Result<(), Wrong> {
        Ok(())
    }

    fn list(names: &[&str]) -> Vec<(usize, String)> {
        names.iter().enumerate().map(|(at, name)| (at, (*name).to_owned())).collect()
    }

    fn entries(enabled: &[&str], disabled: &[&str]) -> String {
        let rules = Rules { enabled: list(enabled), disabled: list(disabled) };
        rules.filter(any).unwrap().entries(None).join(",")
    }

    fn chrome(included: &[&str], excluded: &[&str]) -> String {
        Rules::of_chrome(list(included), list(excluded)).filter(any).unwrap().entries(None).join(",")
    }

    //= docs/configurations.md#categories
    #[test]
    fn the_order_is_perfettos() {
        assert_eq!(entries(&[], &[]), "*");
        assert_eq!(entries(&["a"], &[]), "*");
        assert_eq!(entries(&["a", "b*"], &["*"]), "a,b*");
        assert_eq!(entries(&["a", "b*"], &["*", "bc", "d", "a"]), "a,b*,-bc");
        assert_eq!(entries(&["a*"], &["b", "c*"]), "*,-b,-c*");
        assert_eq!(entries(&["*"], &["c*"]), "*");
        assert_eq!(entries(&["*"], &["b"]), "*,-b");
        assert_eq!(entries(&["disabled-by-default-x"], &["b"]), "*,disabled-by-default-x,-b");
        assert_eq!(entries(&[], &["*"]), "");
        let rules = Rules { enabled: list(&["net:tcp"]), disabled: list(&["a", "net*"]) };
        let message = "\"net:tcp\" is enabled within \"net*\", which is disabled: a recording can have that only \
            if everything else is disabled, too, by \"*\"";
        assert_eq!(rules.filter(any), Err(Wrong::new(1, message)));
    }

    #[test]
    fn chromes_lists_include_only_what_they_name() {
        assert_eq!(chrome(&[], &[]), "*");
        assert_eq!(chrome(&["webkit"], &["*"]), "webkit");
        assert_eq!(chrome(&["cat1", "cat2*"], &["cat2b"]), "cat1,cat2*,-cat2b");
        assert_eq!(chrome(&[], &["a"]), "*,-a");
        assert_eq!(chrome(&["disabled-by-default-x"], &[]), "*,disabled-by-default-x");
        assert_eq!(chrome(&["disabled-by-default-x"], &["*"]), "disabled-by-default-x");
        assert_eq!(chrome(&["*"], &["noisy"]), "*,-noisy");
    }

    #[test]
    fn two_selections_record_what_one_of_them_does() {
        let filter = |included: &[&str], excluded: &[&str]| Filter {
            included: included.iter().map(ToString::to_string).collect(),
            excluded: excluded.iter().map(ToString::to_string).collect(),
        };
        let all_but = filter(&["*"], &["a", "b*"]);
        assert_eq!(all_but.or(&filter(&["a"], &[]), 0), Ok(filter(&["*", "a"], &["b*"])));
        assert_eq!(all_but.or(&filter(&["*"], &["b*"]), 0), Ok(filter(&["*"], &["b*"])));
        assert_eq!(all_but.or(&Filter::default(), 0), Ok(all_but.clone()));
        let message = "one data source excludes \"b*\", and another one has a part of it";
        assert_eq!(all_but.or(&filter(&["bc"], &[]), 5), Err(Wrong::new(5, message)));
    }

    fn matches(entry: &str, name: &str) -> bool {
        entry.strip_suffix('*').map_or(entry == name, |prefix| name.starts_with(prefix))
    }

    proptest! {
        /// The list selects the same as the rules, evaluated one after the other.
        #[test]
        fn a_list_selects_the_same(
            enabled in prop::collection::vec("[ab]{1,3}[*]?|[*]", 0..4),
            disabled in prop::collection::vec("[ab]{1,3}[*]?|[*]", 0..4),
            name in "[ab]{1,4}",
        ) {
            let number = |list: &[String]| list.iter().map(|name| (0, name.clone())).collect::<Vec<_>>();
            let rules = Rules { enabled: number(&enabled), disabled: number(&disabled) };
            if let Ok(filter) = rules.filter(any) {
                let has = |list: &[String], is_exact: bool| {
                    list.iter().any(|entry| entry.ends_with('*') != is_exact && matches(entry, &name))
                };
                let expected = has(&enabled, true)
                    || (!has(&disabled, true) && (has(&enabled, false) || !has(&disabled, false)));
                let is_in = |list: &[String]| list.iter().any(|entry| matches(entry, &name));
                prop_assert_eq!(is_in(&filter.included) && !is_in(&filter.excluded), expected, "{:?}", filter);
            }
        }
    }
}

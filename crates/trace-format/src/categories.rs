//! Which categories the lists of a configuration select.

/// Whether lists select a category, which may be several with commas between them: then one is enough.
//= docs/protocol.md#category-matching
#[must_use]
pub fn selects<S: AsRef<str>>(listed: &[S], additional: &[S], category: &[u8]) -> bool {
    category.split(|byte| *byte == b',').filter(|one| !one.is_empty()).any(|one| {
        let is_excluded = excludes(listed, one) || excludes(additional, one);
        let is_included = includes(listed, one) || (!additional.is_empty() && includes(additional, one));
        is_included && !is_excluded
    })
}

/// How the categories begin that only entries with the same beginning select.
//= docs/protocol.md#category-matching
const DISABLED_BY_DEFAULT: &str = "disabled-by-default-";

/// Whether a list wants a category: one without entries wants everything, and so does one that only excludes.
//= docs/protocol.md#category-matching
fn includes<S: AsRef<str>>(list: &[S], category: &[u8]) -> bool {
    let is_disabled = category.starts_with(DISABLED_BY_DEFAULT.as_bytes());
    let mut wanted = list.iter().map(AsRef::as_ref).filter(|entry| !entry.starts_with('-')).peekable();
    if wanted.peek().is_none() {
        return !is_disabled;
    }
    wanted.any(|entry| matches(entry, category) && (!is_disabled || entry.starts_with(DISABLED_BY_DEFAULT)))
}

/// Whether an entry behind a `-` matches a category, whatever else is in the list.
//= docs/protocol.md#category-matching
#[must_use]
pub fn excludes<S: AsRef<str>>(list: &[S], category: &[u8]) -> bool {
    list.iter()
        .map(AsRef::as_ref)
        .filter_map(|entry| entry.strip_prefix('-'))
        .any(|entry| matches(entry, category))
}

/// An entry ending in `*` is a prefix; an empty one matches nothing.
fn matches(entry: &str, category: &[u8]) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => category.starts_with(prefix.as_bytes()),
        None => entry.as_bytes() == category && !entry.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::selects;

    //= docs/protocol.md#category-matching
    #[test]
    fn categories_match_by_name_or_prefix() {
        let matches = |list: &[&str], category: &str| selects(list, &[], category.as_bytes());
        assert!(matches(&[], "anything"));
        assert!(matches(&["gfx"], "gfx"));
        assert!(!matches(&["gfx"], "gfx2"));
        assert!(!matches(&["gfx"], "gf"));
        assert!(matches(&["kernel:*"], "kernel:sched"));
        assert!(!matches(&["kernel:*"], "kernel"));
        assert!(matches(&["*"], "anything"));
        assert!(!matches(&[""], "anything"));
        assert!(matches(&["app", "net:*"], "net:tcp"));
        assert!(matches(&["app", "net:*"], "app"));
        assert!(!matches(&["app", "net:*"], "appx"));
        assert!(matches(&["-noisy"], "app"));
        assert!(!matches(&["-noisy"], "noisy"));
        assert!(matches(&["-noisy"], "noisy2"));
        // Whatever the order.
        for list in [["app*", "-app:debug*"], ["-app:debug*", "app*"]] {
            assert!(matches(&list, "app:main"));
            assert!(!matches(&list, "app:debug:x"));
            assert!(!matches(&list, "other"));
        }
        assert!(!matches(&["a", "-a"], "a"));
        assert!(!matches(&["-*"], "a"));
        assert!(!matches(&["", "-a"], "b"));
        // One of several is enough, by itself.
        for list in [&["a"][..], &["b"], &["b*"], &["a", "-b"], &["-b"], &[]] {
            assert!(matches(list, "a,b"), "{list:?}");
        }
        for list in [&["c"][..], &["a,b"], &["ab"], &["-a", "-b"], &["a", "-a"], &["-*"]] {
            assert!(!matches(list, "a,b"), "{list:?}");
        }
        assert!(!matches(&[], ","));
        // Only by name.
        let disabled = "disabled-by-default-x";
        for list in [&[disabled][..], &["disabled-by-default-*"], &["a", "disabled-by-default-x*"]] {
            assert!(matches(list, disabled), "{list:?}");
            assert!(matches(list, "b,disabled-by-default-x"), "{list:?}");
        }
        for list in [&[][..], &["*"], &["disabled*"], &["-a"], &[disabled, "-disabled-by-default-*"]] {
            assert!(!matches(list, disabled), "{list:?}");
        }
        assert!(matches(&[], "a,disabled-by-default-x"));
        assert!(selects(&["a"], &[disabled], disabled.as_bytes()));
        assert!(!selects(&[], &["a"], disabled.as_bytes()));
    }
}

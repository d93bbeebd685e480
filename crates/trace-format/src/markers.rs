//! Tags of Android's markers, which are categories.
//= docs/kernel.md#tags

use crate::categories::excludes;

/// The category of all markers.
pub const CATEGORY: &str = "atrace";
/// How the category of a tag begins.
pub const OF_TAG: &str = "atrace:";
/// How an entry begins that selects all markers of one application.
//= docs/kernel.md#markers
pub const OF_APPLICATION: &str = "kernel:atrace:";
/// The categories of the tags, at the numbers of their bits.
pub const TAGS: [&str; 28] = [
    "atrace:always",
    "atrace:gfx",
    "atrace:input",
    "atrace:view",
    "atrace:webview",
    "atrace:wm",
    "atrace:am",
    "atrace:sm",
    "atrace:audio",
    "atrace:video",
    "atrace:camera",
    "atrace:hal",
    "atrace:app",
    "atrace:res",
    "atrace:dalvik",
    "atrace:rs",
    "atrace:bionic",
    "atrace:power",
    "atrace:pm",
    "atrace:ss",
    "atrace:database",
    "atrace:network",
    "atrace:adb",
    "atrace:vibrator",
    "atrace:aidl",
    "atrace:nnapi",
    "atrace:rro",
    "atrace:thermal",
];
/// The bits of all tags.
pub const ALL: u64 = (1 << TAGS.len()) - 1;
/// The tag that is on together with any other.
pub const ALWAYS: u64 = 1;

/// The tag that a category stands for, as its bit.
#[must_use]
pub fn tag(category: &str) -> Option<u64> {
    TAGS.iter().position(|tag| *tag == category).map(|bit| 1 << bit)
}

/// The tags of which a recording wants markers: `is_wanted` selects categories, `listed` has the entries of
/// its list. What the list excludes by name is excluded although `atrace` stands for all.
#[must_use]
pub fn tags<S: AsRef<str>>(is_wanted: impl Fn(&str) -> bool, listed: &[S]) -> u64 {
    if excludes(listed, CATEGORY.as_bytes()) {
        return 0;
    }
    let has_all = is_wanted(CATEGORY);
    let is_selected = |tag: &str| !excludes(listed, tag.as_bytes()) && (has_all || is_wanted(tag));
    let selected = TAGS.iter().enumerate().filter(|(_, tag)| is_selected(tag));
    let found = selected.fold(0, |found, (bit, _)| found | 1 << bit);
    if found == 0 { 0 } else { found | ALWAYS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::categories::selects;

    //= docs/kernel.md#tags
    #[test]
    fn a_list_selects_tags() {
        let tags = |list: &[&str]| tags(|name| selects(list, &[], name.as_bytes()), list);
        let [view, app] = ["atrace:view", "atrace:app"].map(|name| tag(name).unwrap());
        assert_eq!((view, app), (8, 4096));
        for list in [&[][..], &["*"], &["atrace"], &["atrace*"], &["atrace:*"], &["app", "atrace"]] {
            assert_eq!(tags(list), ALL, "{list:?}");
        }
        let none =
            [&["app"][..], &["atrac"], &["atrace:views"], &["atrace:"], &["kernel"], &["*", "-atrace"]];
        for list in none.into_iter().chain([&["-atrace"][..], &["atrace:view", "-atrace:*"]]) {
            assert_eq!(tags(list), 0, "{list:?}");
        }
        assert_eq!(tags(&["atrace:view"]), view | ALWAYS);
        assert_eq!(tags(&["atrace:view", "atrace:app", "x"]), view | app | ALWAYS);
        for list in [&["atrace", "-atrace:view"][..], &["-atrace:view"], &["atrace:*", "-atrace:vi*"]] {
            assert_eq!(tags(list) & view, 0, "{list:?}");
            assert_eq!(tags(list) & app, app, "{list:?}");
        }
        assert_eq!(["atrace", "view", "atrace:x"].map(tag), [None; 3]);
        for (at, one) in TAGS.iter().enumerate() {
            assert_eq!(tag(one), Some(1 << at));
        }
    }
}

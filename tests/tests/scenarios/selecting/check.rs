//! Problems of what is selected.

use super::report::page;
use super::*;

/// Kinds and numbers.
fn counts(list: &Value) -> BTreeMap<String, u64> {
    let of = |problem: &Value| Some((problem["kind"].as_str()?.to_owned(), problem["count"].as_u64()?));
    list.as_array().unwrap().iter().filter_map(of).collect()
}

//= docs/check.md#a-part-of-a-trace
#[test]
fn problems_of_slices_count_if_these_are_selected() {
    let Asked { sandbox, whole } = asked();
    // The file itself has a problem, too.
    let mut bytes = archive();
    bytes.extend([0; 8]);
    fs::write(sandbox.file("trace.fxt"), bytes).unwrap();
    for (options, is_selected) in CASES {
        let count = |is_one: fn(&Slice) -> bool| {
            whole.iter().filter(|slice| is_selected(slice) && is_one(slice)).count() as u64
        };
        let (open, misnamed) = (count(|slice| slice.dur.is_none()), count(|slice| slice.name == "write"));
        let expected = |kind: &str, count: u64| (count > 0).then(|| (kind.to_owned(), count));
        let problems = BTreeMap::from_iter(
            expected("unmatched-begin", open).into_iter().chain(expected("zero-words", 1)),
        );
        let remarks = BTreeMap::from_iter(
            expected("mismatched-end", misnamed).into_iter().chain(expected("no-rate", 2)),
        );
        let output = sandbox.trace([&["check", "--json"], options, &["trace.fxt"]].concat());
        assert_eq!(output.status.code(), Some(1), "{options:?}");
        let answer = Answer::of(&output);
        let report = serde_json::json!({"problems": answer.problems, "remarks": answer.result["remarks"]});
        assert_eq!(
            (counts(&report["problems"]), counts(&report["remarks"])),
            (problems, remarks),
            "{options:?}"
        );
        // The trace itself stays what it is.
        let times = (&answer.traces[0]["start_ns"], &answer.traces[0]["end_ns"]);
        assert_eq!(times, (&BEGIN.into(), &4100.into()), "{options:?}");
        // The page has the same.
        let meta = page(&sandbox, options, "page.html");
        for list in ["problems", "remarks"] {
            let of = |row: &Value| Some((row[0].as_str()?.to_owned(), row[1].as_u64()?));
            let shown: BTreeMap<String, u64> = meta[list].as_array().unwrap().iter().filter_map(of).collect();
            assert_eq!(shown, counts(&report[list]), "{list} {options:?}");
        }
        let arguments = [&["check", "--allow", "zero-words"], options, &["trace.fxt"]].concat();
        let code = sandbox.trace(arguments).status.code();
        assert_eq!(code, Some(i32::from(open > 0)), "{options:?}");
    }
}

//! What `perf script` writes, in several forms.

use super::super::{import, is_ftrace};
use crate::Summary;
use crate::export::folded::{Roots, convert};
use crate::import::testing::lines;

/// The archive, the lines of its stacks, and what the import reports.
fn imported(text: &str) -> (Vec<u8>, Vec<String>, Summary) {
    assert!(is_ftrace(text.as_bytes()));
    let mut archive = Vec::new();
    let summary = import(text.as_bytes(), &mut archive).unwrap();
    let mut folded = Vec::new();
    convert(&archive[..], &mut folded, crate::Filter::default(), Roots::Threads).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    (archive, folded.lines().map(str::to_owned).collect(), summary)
}

/// Stacks of two processes and of the kernel; addresses of the text are relative to their modules.
const STACKS: &str = "\
# captured on: Mon
#
perf-exec     0     0.000000: PERF_RECORD_COMM: perf-exec:70/70
app 70 100.000000500: PERF_RECORD_COMM exec: app:70/70
app 70/70 [001] 100.000001:     250000 cpu-clock:uhH: 
\t            116c inner+0x13 (/tmp/app)
\t            11e0 (anonymous namespace)::outer<std::vector<int> >(int)+0x18 (/tmp/app (deleted))
\t           891f5 start_thread+0x305 (/usr/lib/libc.so.6)
\t               0 [unknown] ([unknown])

app 70/71 [000] 100.000002:     250000 cpu-clock:uhH: 
\t            1190 outer2+0x40 (/tmp/app)
\t           891f5 start_thread+0x305 (/usr/lib/libc.so.6)

a b 1 80/80 [000] 100.000003:     250000 cpu-clock:uhH: 
\tffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])
\t            116c other+0xc (/tmp/app2)
\t            1160 hot (inlined)
\t            1160 warm (inlined)
\t            1160 main+0x0 (/tmp/app2)
\t            1300 [unknown] (/usr/lib/libc.so.6)
swapper     0/0     [001] 100.000004:     250000 cpu-clock:uhH: 
\tffffffff81000020 idle+0x20 ([kernel.kallsyms])

";

/// A sample without all of its frames would have another root.
//= docs/import.md#what-is-cut-off
#[test]
fn a_text_that_is_cut_off_anywhere_has_the_samples_before_the_cut() {
    let (_, all, _) = imported(STACKS);
    // Behind the first sample.
    let first = STACKS.find("\n\n").unwrap() + 2;
    for cut in first..STACKS.len() {
        let (_, folded, _) = imported(&STACKS[..cut]);
        assert!(folded.iter().all(|stack| all.contains(stack)), "{folded:?}: {}", &STACKS[..cut]);
    }
}

//= docs/import.md#perf
#[test]
fn samples_have_their_stacks() {
    let (archive, folded, summary) = imported(STACKS);
    insta::assert_snapshot!(folded.join("\n"), @r#"
    a b_1;a b_1;[unknown];main;warm;hot;other;do_syscall_64_[k] 1
    app;app;[unknown];start_thread;(anonymous namespace)::outer<std::vector<int> >(int);inner 1
    app;app;start_thread;outer2 1
    cpu-1;cpu-1;idle 1
    "#);
    let found = lines(&archive);
    let count = |what: &str| found.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count(" backtrace "), count(" function ")), (4, 12));
    assert_eq!((count(" module 70/"), count(" module 80/"), count(" module 0/")), (4, 4, 1));
    assert_eq!((summary.skipped, summary.warnings), (Vec::new(), 0));
}

/// `perf script -G`, or a recording without call chains; perf may leave out offsets, CPUs and periods.
//= docs/import.md#perf
#[test]
fn a_stack_of_one_function_is_in_the_line_of_its_sample() {
    let (_, folded, summary) = imported(
        "            app 7 1.5: cpu-clock:ppp:      55925cdf116c inner (/tmp/app)
            app 7 1.6: cpu-clock:ppp:      55925cdf116d inner (/tmp/app)
            app 7 1.7:          1 cache-misses:      55925cdf1170 outer (/tmp/app)
            app 7 1.8: cpu/event=0x3c/u:      55925cdf1171 [unknown] (/tmp/app)
            app 7 1.9: cycles:
  :-1    -1 2.0: cycles:      10 [unknown] ([unknown])
",
    );
    assert_eq!(
        folded,
        ["0;thread_0;[unknown] 1", "app;app;[unknown] 1", "app;app;inner 2", "app;app;outer 1"]
    );
    assert_eq!(summary.skipped, [("samples without a stack".to_owned(), 1)]);
    let several =
        "there are samples of several events: cache-misses, cpu-clock:ppp, cpu/event=0x3c/u, cycles";
    assert_eq!(summary.first_warnings, [several]);
}

/// The number of the thread is behind whatever its name has.
//= docs/import.md#perf
#[test]
fn names_of_threads_may_look_like_other_columns() {
    let (archive, _, summary) = imported(
        "   a 7 [1] b 7/  9513   911.648644:     250000   cpu-clock:      55c9ac0d7145 inner+0xc (/tmp/w)
   a 7 [1] b 7/  9513/9514  U     2026-11-30 17:39:36.263504   911.648894:  1 cpu-clock:  55c9ac0d7145 inner+0xc (/tmp/w)
   x 12/34 [003]    70 [001] K       5.000000: cpu-clock:  55c9ac0d7145 inner+0xc (/tmp/w)
   a 1 2.5: b    71 [001]     6.000000: cpu-clock:  55c9ac0d7145 inner+0xc (/tmp/w)
",
    );
    let found = lines(&archive);
    let is_of = |line: &&String| line.contains(" kernel-object thread ") || line.contains(" backtrace ");
    let found: Vec<&str> = found.iter().filter(is_of).map(|line| line.split(" 0x").next().unwrap()).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #9513 "a 7 [1] b 7/" {process=#0}
    - kernel-object thread #9514 "a 7 [1] b 7/" {process=#9513}
    - kernel-object thread #70 "x 12/34 [003]" {process=#0}
    - kernel-object thread #71 "a 1 2.5: b" {process=#0}
    5.000000000 backtrace 0/70
    6.000000000 backtrace 0/71
    911.648644000 backtrace 0/9513
    911.648894000 backtrace 9513/9514
    "#);
    assert_eq!(summary.skipped, Vec::new());
}

/// Columns that `-F` adds to mispredicted branches, memory accesses and page faults.
//= docs/import.md#perf
#[test]
fn other_data_of_samples_is_no_function() {
    let (_, folded, summary) = imported(
        "w 9 1.0: 1 page-faults:  7fdd82edd318 [unknown] (/lib/libc.so.6)  7fdd830da2b2 _dl_map+0xce2 (/lib/ld.so)
w 9 1.1: 1 cpu-clock:   0   1e05080021 |OP N/A|LVL N/A or N/A|BLK  N/A     40   55c9ac0d7145 inner+0xc (/tmp/w)      1b2
w 9 1.2: 1 branches:u:  401136 from+0x3 (/tmp/w) =>   401200 to+0x0 (/tmp/w)
w 9 1.3: 1 branches:u:   call   401136 from+0x3 (/tmp/w)
w 9 1.4: 1 cpu-clock:  7fdd82edd318 abc word (/tmp/w)
w 9 1.5: 1 mem:0x401136:rw:  401136 operator new(unsigned long)+0x3 (/tmp/w (deleted))
w 9 1.6: 1 cpu-clock:  |OP N/A|
w 9 1.7: 1 cpu-clock:  7fdd82edd318 ffffffff81000010 idle+0x1 ([kernel.kallsyms])
",
    );
    assert_eq!(
        folded,
        ["w;w;_dl_map 1", "w;w;from 2", "w;w;idle_[k] 1", "w;w;inner 1", "w;w;operator new(unsigned long) 1"]
    );
    let skipped = [("samples without a stack".to_owned(), 2), ("texts beside samples".to_owned(), 7)];
    assert_eq!(summary.skipped, skipped);
}

/// Frames belong to the entry before them, if that can be read.
//= docs/import.md#perf
#[test]
fn an_entry_of_an_unknown_form_has_no_part_in_others() {
    let frame = "\t 401136 work+0x3 (/tmp/app)\n";
    let time_in_text = "app 7 [001] 3.000000: ftrace:print: foo 12 [3] 4.500000: bar: baz";
    let (archive, folded, summary) = imported(&format!(
        "app 7 1.5: 1 cycles: \n\napp 7 [001] 2.000000: 1 cycles: \n{frame}  app.c:12\n{frame}\
         {time_in_text}\n\
         dd 7 CHECK 3.5: 1 cycles: 10 x (/y)\n{frame}\
         a 7 1.5: b: 7 4.0: cycles:\n{frame}"
    ));
    assert_eq!(folded, ["app;app;work;work 1"]);
    let skipped = [("lines that are no events".to_owned(), 5), ("samples without a stack".to_owned(), 1)];
    assert_eq!(summary.skipped, skipped);
    let text = r#"3.000000000 instant 0/7 "kernel:probe" "print" scope=thread"#;
    assert!(lines(&archive).iter().any(|line| line.starts_with(text)), "{:?}", lines(&archive));
}

//= docs/import.md#perf
#[test]
fn tracepoints_are_those_of_ftrace() {
    let switch =
        "prev_comm=app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=other next_pid=8 next_prio=98";
    let text = format!(
        "app 7 [001] 81280.877686: sched:sched_switch: {switch}
\t    ffffffff81000010 schedule+0x10 ([kernel.kallsyms])
\t                1150 wait+0x10 (/tmp/app)

other 8 [001] 81280.877700: sched:sched_switch: other:8 [98] D ==> swapper/1:0 [120]
other 8 [001] 81280.877800: block:block_rq_issue: 8,0 WS 4096
other 8 [001] 81280.877900:     irq:softirq_entry: vec=7 [action=SCHED]
other 8 [001] 81280.878000:     irq:softirq_exit: vec=7 [action=SCHED]
some other line
"
    );
    let (archive, folded, summary) = imported(&text);
    insta::assert_snapshot!(lines(&archive).join("\n"), @r#"
    - kernel-object thread #7 "app" {process=#0}
    - kernel-object thread #8 "other" {process=#0}
    - kernel-object thread #2147418113 "cpu-1" {process=#0}
    81280.877686000 module 0/7 id=0 "[kernel.kallsyms]" build-id=
    81280.877686000 mmap 0/7 id=0 --x start=0xffffff0000000000 length=0x10000000000 linked-at=0xffffff0000000000
    81280.877686000 module 0/7 id=1 "/tmp/app" build-id=
    81280.877686000 mmap 0/7 id=1 --x start=0x20000000000 length=0x10000000000 linked-at=0x0
    - function 0 start=0xffffffff81000000 length=0x11 "schedule"
    - function 0 start=0x20000001140 length=0x11 "wait"
    81280.877686000 context-switch cpu=1 7 blocked -> 8 {outgoing_weight=120i32, incoming_weight=98i32}
    81280.877686000 backtrace 0/7 0xffffffff81000010 "schedule" 0x20000001150 "wait"
    81280.877700000 context-switch cpu=1 8 blocked -> 2147418113 {outgoing_weight=98i32, incoming_weight=-2147483648i32}
    81280.877800000 instant 0/8 "kernel:tp" "block_rq_issue" scope=thread {text="8,0 WS 4096"}
    81280.877900000 begin 0/2147418113 "kernel:irq" "softirq" {vec=7u32, name="SCHED"}
    81280.878000000 end 0/2147418113 "kernel:irq" "softirq"
    "#);
    assert_eq!(folded, ["app;app;wait;schedule_[k] 1"]);
    assert_eq!(summary.skipped, [("lines that are no events".to_owned(), 1)]);
    assert_eq!(summary.first_warnings, ["no event of ftrace's: some other line"]);
}

/// A program's compiled code has other functions at the addresses of another program's.
//= docs/import.md#perf
#[test]
fn different_functions_at_one_address_stay_different() {
    let mut text = String::new();
    for (number, name) in ["one", "two", "three", "one"].iter().enumerate() {
        text += &format!(
            "app 7 1.{number}: 1 cycles: \n\t 7f0010 {name}+0x10 (//anon)\n\t 7f0018 all+0x2 (//anon)\n\n"
        );
    }
    let (_, folded, _) = imported(&text);
    assert_eq!(folded, ["app;app;all;one 2", "app;app;all;three 1", "app;app;all;two 1"]);
}

//= docs/import.md#perf
#[test]
fn deep_stacks_are_cut_off_at_their_outer_end() {
    let frames: String =
        (0..300).map(|depth| format!("\t {:x} f{depth}+0x1 (/tmp/app)\n", 0x1000 + 16 * depth)).collect();
    let (_, folded, summary) = imported(&format!("app 7 1.5: 1 cycles: \n{frames}\n"));
    assert!(folded[0].starts_with("app;app;f254;f253;") && folded[0].ends_with(";f1;f0 1"), "{folded:?}");
    assert_eq!(summary.skipped, [("outer frames beyond 255 of a stack".to_owned(), 45)]);
}

//= docs/import.md#perf
#[test]
fn other_texts_are_none_of_perf() {
    for other in ["app 7 1.5: cycles: hello\n", "a 1 2.5: b\n", "Dec 1 10:00:00.5: x: y\n", "1 2 3.4: 5\n"] {
        assert!(!super::is_perf(other.as_bytes()), "{other}");
    }
}

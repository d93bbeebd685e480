//! Lines, and what comes of them.

use super::*;
use crate::import::format::Format;
use crate::import::testing::lines;

fn imported(text: &str) -> (Vec<String>, Summary) {
    assert!(is_ftrace(text.as_bytes()) || text.starts_with("<!DOCTYPE html>"));
    let mut archive = Vec::new();
    let summary = import(text.as_bytes(), &mut archive).unwrap();
    (lines(&archive), summary)
}

const HEAD: &str = "# tracer: nop\n#\n#           TASK-PID    CPU#    TIMESTAMP  FUNCTION\n";

/// As some editors save it.
//= docs/import.md#ftrace
#[test]
fn a_byte_order_mark_is_accepted() {
    for text in ["# tracer: nop\n", "", "cpus=4\n"] {
        let text = format!("\u{feff}{text} app-1 [000] 0.1: tracing_mark_write: B|1|draw\n");
        assert!(is_ftrace(text.as_bytes()));
        let mut archive = Vec::new();
        let summary = import(text.as_bytes(), &mut archive).unwrap();
        assert_eq!((summary.events, summary.skipped), (1, Vec::new()), "{text}");
        assert!(lines(&archive).iter().any(|line| line.contains("\"app\"")), "{:?}", lines(&archive));
    }
}

/// A line without its end may be any part of it: `prio=12` of `prio=120`.
//= docs/import.md#what-is-cut-off
#[test]
fn a_text_that_is_cut_off_anywhere_has_the_lines_before_the_cut() {
    let text = format!(
        "{HEAD} app-1 [000] 0.1: tracing_mark_write: C|1|mem|123\n app-1 [000] 0.2: tracing_mark_write: C|1|mem|456\n"
    );
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).skip(3).map(|end| end + 1).collect();
    assert_eq!(ends.len(), 2);
    for cut in ends[0]..=text.len() {
        let (found, summary) = imported(&text[..cut]);
        let values: Vec<&str> =
            found.iter().filter_map(|line| line.split_once("value=")).map(|(_, value)| value).collect();
        let expected = if cut == text.len() { &["123i64}", "456i64}"][..] } else { &["123i64}"] };
        assert_eq!(values, expected, "{}", &text[..cut]);
        // White space is no part of an event.
        let is_cut_off = cut != text.len() && !text[ends[0]..cut].trim().is_empty();
        assert_eq!(summary.is_cut_off, is_cut_off, "{}", &text[..cut]);
    }
}

/// What comes before an error is read, also if it is little.
#[test]
fn an_input_that_fails_is_read_up_to_there() {
    for (text, read) in [
        (" app-1 [000] 0.1: tracing_mark_write: B|1|draw\n", "\"draw\""),
        ("app 7 1.5: cycles: 55925cdf116c inner (/tmp/app)\n", " backtrace 0/7 "),
    ] {
        let end = End::default();
        end.is(std::io::Error::other("damaged"));
        let mut archive = Vec::new();
        let error = import(text.as_bytes().chain(end), &mut archive).unwrap_err();
        let ImportError::Stopped { summary, .. } = error else { panic!("{error}") };
        assert_eq!(summary.warnings, 0);
        assert!(lines(&archive).last().unwrap().contains(read), "{:?}", lines(&archive));
    }
}

//= docs/import.md#kernel-events
//= docs/import.md#names-of-ends
#[test]
fn kernel_events_become_their_records() {
    let (found, summary) = imported(&format!(
        "{HEAD}
          <idle>-0       (-------) [001] d.h1.    10.000001: sched_waking: comm=my app pid=70 prio=120 target_cpu=003
          <idle>-0       (-------) [001] d..1.    10.000002: sched_wakeup: comm=my app pid=70 prio=120 target_cpu=003
          <idle>-0       (-------) [003] d..2.    10.000003: sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=70 next_prio=97
          my app-70      (     60) [003] d..1.    10.000004: sys_enter: NR 202 (7f12, 80)
          my app-70      (     60) [003] d..1.    10.0000045: softirq_entry: vec=7 [action=SCHED]
          my app-70      (     60) [003] d..1.    10.000004501: irq_handler_entry: irq=9 name=eth0, tx
          my app-70      (     60) [003] d..1.    10.000005: irq_handler_exit: irq=9 ret=handled
          my app-70      (     60) [003] d..1.    10.000006: softirq_exit: vec=7 [action=SCHED]
          my app-70      (     60) [003] d..1.    10.000007: sys_exit: NR 202 = 0
          my app-70      (     60) [003] d..1.    10.000007: sys_futex(uaddr: 1, op: 2)
          my app-70      (     60) [003] d..1.    10.000008: sys_futex -> 0x0
          my app-70      (     60) [003] d..1.    10.000009: task_newtask: pid=71 comm=my app clone_flags=3d0f00 oom_score_adj=0
          my app-70      (     60) [003] d..1.    10.000009: task_rename: pid=71 oldcomm=my app newcomm=worker oom_score_adj=0
          my app-70      (     60) [003] d..1.    10.000010: cpu_idle: state=4294967295 cpu_id=3
          my app-70      (     60) [003] d..1.    10.000010: cpu_frequency_limits: min=5 max=7 cpu_id=2
          my app-70      (     60) [003] d..1.    10.000011: block_rq: dev=8,0 rwbs=WS name=a b
          my app-70      (     60) [003] d..1.    10.000011: printk: hello world
          my app-70      (     60) [003] d..2.    10.000012: sched_switch: prev_comm=my app prev_pid=70 prev_prio=97 prev_state=D|K ==> next_comm=swapper/3 next_pid=0 next_prio=120
CPU:3 [LOST 12 EVENTS]
          my app-70      (     60) [003] d..1.    10.000013: softirq_exit: vec=7 [action=SCHED]
        kthread-5        (-------) [000] d..1.    10.000014: sched_waking: comm=worker pid=71 prio=120 target_cpu=000
"
    ));
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #70 "my app" {process=#0}
    10.000001000 thread-wakeup cpu=3 70 {weight=120i32}
    - kernel-object thread #2147418115 "cpu-3" {process=#0}
    10.000003000 context-switch cpu=3 2147418115 running -> 70 {outgoing_weight=-2147483648i32, incoming_weight=97i32}
    - kernel-object thread #70 "my app" {process=#60}
    10.000004000 begin 60/70 "kernel:syscall" "sys_202"
    10.000004500 begin 0/2147418115 "kernel:irq" "softirq" {vec=7u32, name="SCHED"}
    10.000004501 begin 0/2147418115 "kernel:irq" "irq" {"irq #"=9u32, name="eth0, tx"}
    10.000005000 end 0/2147418115 "kernel:irq" "irq"
    10.000006000 end 0/2147418115 "kernel:irq" "softirq"
    10.000007000 end 60/70 "kernel:syscall" "sys_202"
    10.000007000 begin 60/70 "kernel:syscall" "sys_futex"
    10.000008000 end 60/70 "kernel:syscall" "sys_futex"
    - kernel-object thread #71 "my app" {process=#60}
    - kernel-object thread #71 "worker" {process=#60}
    10.000010000 counter 0/2147418115 "kernel:power" "cpu_idle" id=0x3 {state=-1i64}
    - kernel-object thread #2147418114 "cpu-2" {process=#0}
    10.000010000 counter 0/2147418114 "kernel:power" "cpu_frequency_limits" id=0x2 {min=5i64, max=7i64}
    10.000011000 instant 60/70 "kernel:tp" "block_rq" scope=thread {dev="8,0", rwbs="WS", name="a b"}
    10.000011000 instant 60/70 "kernel:tp" "printk" scope=thread {text="hello world"}
    10.000012000 context-switch cpu=3 70 blocked -> 2147418115 {outgoing_weight=97i32, incoming_weight=-2147483648i32}
    10.000012000 instant 0/2147418115 "kernel:meta" "drop_stats" scope=thread {num_records=12u64}
    - kernel-object thread #5 "kthread" {process=#0}
    10.000014000 thread-wakeup cpu=0 71 {weight=120i32, waker=#5}
    "#);
    assert_eq!(summary.skipped, [("ends of spans that began before the trace".to_owned(), 1)]);
    assert_eq!(summary.first_warnings, ["the kernel lost 12 events of CPU 3"]);
    assert_eq!(summary.events, 13);
}

//= docs/import.md#markers
#[test]
fn markers_are_events_of_who_wrote_them() {
    let (found, summary) = imported(&format!(
        "{HEAD}
    app-70 [000] 1.5: tracing_mark_write: B|60|outer|a
    app-70 [000] 1.6: tracing_mark_write: C|60|queue|7
    app-70 [000] 1.6: tracing_mark_write: C|61|theirs|8
    app-70 [000] 1.7: 0: S|60|job|12
    app-71 [000] 1.8: print: F|60|job|12
    app-70 [000] 1.8: tracing_mark_write: G|60|lane|step|3
    app-70 [000] 1.8: tracing_mark_write: H|60|lane|3
    app-70 [000] 1.8: tracing_mark_write: N|60|lane|point
    app-70 [000] 1.9: tracing_mark_write: E
    app-70 [000] 1.9: tracing_mark_write: E|60
    app-70 [000] 2.0: tracing_mark_write: just text
    app-70 [000] 2.0: tracing_mark_write: trace_event_clock_sync: parent_ts=1
"
    ));
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #70 "app" {process=#0}
    - kernel-object thread #70 "app" {process=#60}
    1.500000000 begin 60/70 "atrace" "outer|a"
    1.600000000 counter 60/70 "atrace" "queue" id=0x0 {value=7i64}
    1.600000000 counter 61/61 "atrace" "theirs" id=0x0 {value=8i64}
    1.700000000 async-begin 60/70 "atrace" "job" id=0x615ce8e241566737
    - kernel-object thread #71 "app" {process=#0}
    - kernel-object thread #71 "app" {process=#60}
    1.800000000 async-end 60/71 "atrace" "job" id=0x615ce8e241566737
    1.800000000 async-begin 60/70 "atrace" "step" id=0x268714327c2470e2
    1.800000000 async-end 60/70 "atrace" "step" id=0x268714327c2470e2
    1.800000000 instant 60/70 "atrace" "point" scope=thread {track="lane"}
    1.900000000 end 60/70 "atrace" "outer|a"
    2.000000000 instant 60/70 "kernel:probe" "print" scope=thread {text="just text"}
    "#);
    assert_eq!(summary.skipped, [("ends of spans that began before the trace".to_owned(), 1)]);
}

//= docs/import.md#ftrace
#[test]
fn a_page_of_systrace_is_passed_over_but_for_its_trace() {
    let page = "<!DOCTYPE html>\n<script>\nvar x = 'app-1 [000] 1.0: tracing_mark_write: B|1|no';\n\
        var linuxPerfData = \"\\\n# tracer: nop\\n\\\n  app-70 [000] 1.5: 0: C|60|queue|7\\n\\\n   \\n\";\n\
        app-70 [000] 1.7: 0: C|60|queue|9\n</html>\n";
    let (found, summary) = imported(page);
    assert_eq!(found.last().unwrap(), r#"1.500000000 counter 60/70 "atrace" "queue" id=0x0 {value=7i64}"#);
    assert_eq!((summary.events, summary.warnings), (1, 0));
}

//= docs/import.md#what-is-no-trace
#[test]
fn text_of_another_tracer_is_an_error() {
    let text = "# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n\
                0)               |  do_idle() {\n 0)   0.306 us    |    tick();\n 0)   1.100 us    |  }\n";
    let error = import(text.as_bytes(), std::io::sink()).unwrap_err();
    let expected = "taken for text of ftrace's, but nothing in it can be read; lines that are no events: 3";
    assert_eq!(error.to_string(), expected);
    assert_eq!(imported("# tracer: nop\n#\n").1, Summary::default());
}

//= docs/import.md#ftrace
#[test]
fn other_lines_are_counted_and_reported() {
    let (found, summary) =
        imported(&format!("TRACE:\n{HEAD} app-70 [000] 1.5: 0: C|60|queue|7\nsome other line\n"));
    assert_eq!(found.len(), 3);
    assert_eq!(summary.skipped, [("lines that are no events".to_owned(), 1)]);
    assert_eq!(summary.first_warnings, ["no event of ftrace's: some other line"]);
    for other in ["", "hello\n", "2026-01-01 10:00:00 log [000] line: x\n", "{}", "<!DOCTYPE html>\n"] {
        assert!(!is_ftrace(other.as_bytes()), "{other}");
    }
}

/// What `trace-cmd report` writes, which has forms of its own for some events.
//= docs/import.md#ftrace
#[test]
fn events_of_trace_cmd_are_the_same_ones() {
    let (found, summary) = imported(
        "version = 7
CPU 1 is empty
cpus=2
          <idle>-0     [000] dNh2.   100.000060: sched_wakeup:         a b:c:100 [120] CPU:001
          <idle>-0     [000] dNh2.   100.000070: sched_wakeup_new:     app:101 [97] success=1 CPU:000
          <idle>-0     [000]   100.000100: sched_switch:         swapper/0:0 [120] R ==> a b:c:100 [98]
           a b:c-100   [000]   100.000200: print:                tracing_mark_write: B|60|draw: all
           a b:c-100   [000]   100.000300: print:                tracing_mark_write.constprop.0: E|60
           a b:c-100   [000]   100.000310: print:                0xffffffff81234567: C|60|queue|7
           a b:c-100   [000]   100.000320: print:                other function: note
           a b:c-100   [000]   100.000330: sys_enter_openat:     dfd: 0xffffff9c, filename: 0x7ffd, flags: 0x80000
           a b:c-100   [000]   100.000340: sys_exit_openat:      0x3
           a b:c-100   [000]   100.000500: sched_switch:         a b:c:100 [98] D|W ==> swapper/0:0 [120]
CPU:0 [25 EVENTS DROPPED]
CPU:1 [EVENTS DROPPED]
",
    );
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #100 "a b:c" {process=#0}
    100.000060000 thread-wakeup cpu=1 100 {weight=120i32}
    - kernel-object thread #101 "app" {process=#0}
    100.000070000 thread-wakeup cpu=0 101 {weight=97i32}
    - kernel-object thread #2147418112 "cpu-0" {process=#0}
    100.000100000 context-switch cpu=0 2147418112 running -> 100 {outgoing_weight=-2147483648i32, incoming_weight=98i32}
    - kernel-object thread #100 "a b:c" {process=#60}
    100.000200000 begin 60/100 "atrace" "draw: all"
    100.000300000 end 60/100 "atrace" "draw: all"
    100.000310000 counter 60/100 "atrace" "queue" id=0x0 {value=7i64}
    100.000320000 instant 60/100 "kernel:probe" "print" scope=thread {text="other function: note"}
    100.000330000 begin 60/100 "kernel:syscall" "sys_openat"
    100.000340000 end 60/100 "kernel:syscall" "sys_openat"
    100.000500000 context-switch cpu=0 100 blocked -> 2147418112 {outgoing_weight=98i32, incoming_weight=-2147483648i32}
    100.000500000 instant 0/2147418112 "kernel:meta" "drop_stats" scope=thread {num_records=25u64}
    - kernel-object thread #2147418113 "cpu-1" {process=#0}
    100.000500000 instant 0/2147418113 "kernel:meta" "drop_stats" scope=thread
    "#);
    assert_eq!(summary.skipped, []);
}

/// It is no event at time 0.
//= docs/import.md#kernel-events
#[test]
fn losses_before_the_first_event_have_its_time() {
    let switch = "app-7 [001] d..2. 5000.000100: sched_switch: prev_comm=app prev_pid=7 prev_prio=120 \
        prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
    let times = |text: &str| {
        let (found, summary) = imported(text);
        let times = found.iter().filter(|line| line.contains("drop_stats"));
        (times.map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>(), summary.warnings)
    };
    let first = "5000.000100000".to_owned();
    let loss = "CPU:0 [LOST 1234 EVENTS]\n";
    assert_eq!(times(&format!("{HEAD}{loss}{switch}")), (vec![first.clone()], 1));
    let unknown = "CPU:1 [LOST EVENTS]\n";
    assert_eq!(
        times(&format!("{HEAD}{loss}{unknown}{switch}{loss}")),
        (vec![first.clone(), first.clone(), first], 3)
    );
    // Nothing has a time.
    assert_eq!(times(&format!("{HEAD}{loss}")), (vec!["0.000000000".to_owned()], 1));
    let many: String = (0..5000).map(|cpu| format!("CPU:{cpu} [LOST 1 EVENTS]\n")).collect();
    let (_, summary) = imported(&format!("{HEAD}{many}{switch}"));
    assert_eq!(summary.skipped, [("losses before the first event".to_owned(), 5000 - 4096)]);
}

/// The first line looks like a list.
//= docs/import.md#ftrace
#[test]
fn text_may_begin_with_a_bracket() {
    let switch = " app-70 [000] 1.5: sched_waking: comm=a pid=7 prio=120 target_cpu=000\n";
    for first in ["[LOST 120 EVENTS]\n", " [kworker/0:1]-9 [000] 1.4: print: x\n"] {
        let text = format!("{first}{switch}");
        assert_eq!(Format::of(text.as_bytes(), true), Some(Format::Ftrace), "{first}");
        let (found, _) = imported(&text);
        assert!(found.iter().any(|line| line.starts_with("1.500000000 thread-wakeup")), "{found:?}");
    }
    for json in ["[1]", "[\"x\"]", "[{\"ph\":1}]", "[]"] {
        assert_eq!(Format::of(json.as_bytes(), true), Some(Format::Json), "{json}");
    }
}

/// `prctl` and `trace_marker` take any bytes.
//= docs/import.md#ftrace
#[test]
fn lines_need_not_be_utf_8() {
    let mut text = HEAD.as_bytes().to_vec();
    text.extend_from_slice(b" a\xffb-70 [000] 1.5: tracing_mark_write: B|60|x\xc3\n");
    text.extend_from_slice(b" a\xffb-70 [000] 1.6: tracing_mark_write: E|60\n");
    text.extend_from_slice(b" c-71 [000] 1.7: tracing_mark_write: \x80\0\xbf\n");
    text.extend_from_slice(b" c-71 [000] 1.8: block_rq: name=");
    text.resize(text.len() + 40_000, 0x80);
    text.push(b'\n');
    let mut archive = Vec::new();
    let summary = import(&text[..], &mut archive).unwrap();
    let found: Vec<_> =
        lines(&archive).iter().map(|line| line.chars().take(90).collect::<String>()).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #70 "a�b" {process=#0}
    - kernel-object thread #70 "a�b" {process=#60}
    1.500000000 begin 60/70 "atrace" "x�"
    1.600000000 end 60/70 "atrace" "x�"
    - kernel-object thread #71 "c" {process=#0}
    1.700000000 instant 0/71 "kernel:probe" "print" scope=thread {text="�\u{0}�"}
    - further-arguments blob[32000]:06000900c0d40180efbfbdefbfbdefbf…
    - further-arguments blob[32000]:efbfbdefbfbdefbfbdefbfbdefbfbdef…
    - further-arguments blob[32000]:bdefbfbdefbfbdefbfbdefbfbdefbfbd…
    - further-arguments blob[24008]:bfbdefbfbdefbfbdefbfbdefbfbdefbf…
    1.800000000 instant 0/71 "kernel:tp" "block_rq" scope=thread {name="����������������������
    "#);
    let warning = "4 lines are not UTF-8: U+FFFD replaces invalid bytes";
    assert_eq!((summary.first_warnings, summary.events), (vec![warning.to_owned()], 4));
}

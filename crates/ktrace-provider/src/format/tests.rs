use super::*;

const SWITCH: &str = "name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;

print fmt: \"prev_comm=%s prev_pid=%d\", REC->prev_comm, REC->prev_pid
";

fn kind(line: &str) -> (String, FieldLocation) {
    let field = field(line).unwrap_or_else(|| panic!("{line}"));
    (field.name, field.place)
}

//= docs/kernel.md#formats
#[test]
fn a_format_says_where_fields_are() {
    let format = Format::parse(SWITCH).unwrap();
    assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("sched_switch", 372, 7));
    let place = |name| format.place(name).unwrap();
    assert_eq!(place("common_pid"), FieldLocation { offset: 4, size: 4, kind: Kind::Signed });
    assert_eq!(place("prev_comm"), FieldLocation { offset: 8, size: 16, kind: Kind::Text });
    assert_eq!(place("prev_state"), FieldLocation { offset: 32, size: 8, kind: Kind::Signed });
    assert_eq!(format.place("next_pid"), None);
    assert_eq!(Format::parse("name: x\nformat:\n"), None);
}

//= docs/kernel.md#formats
#[test]
fn every_kind_of_field_is_known() {
    for (line, name, expected) in [
        ("field:__data_loc char[] filename; offset:8; size:4; signed:0;", "filename", Kind::TextElsewhere),
        ("field:__rel_loc char[] file; offset:8; size:4; signed:0;", "file", Kind::TextBehind),
        ("field:__data_loc u32[] list; offset:8; size:4; signed:0;", "list", Kind::Other),
        ("field:const char * name; offset:8; size:8; signed:0;", "name", Kind::Pointer),
        ("field:void *lock; offset:8; size:8; signed:0;", "lock", Kind::Pointer),
        ("field:bool group_dead; offset:8; size:1; signed:0;", "group_dead", Kind::Bool),
        ("field:unsigned long args[6]; offset:8; size:48; signed:0;", "args", Kind::Other),
        ("field:unsigned int flags; offset:8; size:4; signed:0;", "flags", Kind::Unsigned),
        ("field: local_t commit; offset:8; size:8; signed:1;", "commit", Kind::Signed),
        ("field: char data; offset:8; size:4080; signed:0;", "data", Kind::Other),
    ] {
        let (found, place) = kind(line);
        assert_eq!((found.as_str(), place.kind, place.offset), (name, expected, 8), "{line}");
    }
    for wrong in ["print fmt: x", "field:int x; size:4;", "field:x; offset:0; size:4; signed:0;"] {
        assert_eq!(field(wrong), None, "{wrong}");
    }
}

//= docs/kernel.md#formats
#[test]
fn fields_are_read_where_they_are() {
    let place = |offset, size, kind| FieldLocation { offset, size, kind };
    let payload = [0xff, 0xff, 0xff, 0xff, 0xfe, 0, 8, 0, 3, 0, b'a', b'b', 0, b'c'];
    assert_eq!(place(0, 4, Kind::Signed).signed(&payload), -1);
    assert_eq!(place(0, 4, Kind::Unsigned).signed(&payload), 0xffff_ffff);
    assert_eq!(place(4, 1, Kind::Signed).signed(&payload), -2);
    assert_eq!(place(4, 2, Kind::Unsigned).unsigned(&payload), 0xfe);
    assert_eq!(place(12, 4, Kind::Unsigned).unsigned(&payload), 0);
    assert_eq!(place(10, 4, Kind::Text).text(&payload), b"ab");
    assert_eq!(place(10, 0, Kind::Text).text(&payload), b"ab");
    let elsewhere = [10, 0, 4, 0, 0, 0, 0, 0, 0, 0, b'x', b'y', b'z', 0];
    assert_eq!(place(0, 4, Kind::TextElsewhere).text(&elsewhere), b"xyz");
    let behind = [6, 0, 4, 0, 0, 0, 0, 0, 0, 0, b'x', b'y', b'z', 0];
    assert_eq!(place(0, 4, Kind::TextBehind).text(&behind), b"xyz");
    // Text that would be outside is none.
    assert_eq!(place(0, 4, Kind::TextElsewhere).text(&[200, 0, 4, 0]), b"");
    assert_eq!(place(20, 4, Kind::Unsigned).unsigned(&payload), 0);
}

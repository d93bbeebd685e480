//! Files with a trace in them.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::Write;

const EVENT: &str = r#"{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}"#;
const TEXT: &str = "# tracer: nop\n#\n app-1 [000] 0.1: tracing_mark_write: B|1|draw\n";

fn json() -> Vec<u8> {
    format!("[{EVENT}]").into_bytes()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlibbed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// With the checksum.
fn deflated(bytes: &[u8]) -> (Vec<u8>, u32) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    (encoder.finish().unwrap(), crc.sum())
}

fn tar_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A ZIP archive as the format describes it.
fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let (packed, crc) = deflated(bytes);
        let mut fields = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for field in [crc, packed.len() as u32, bytes.len() as u32] {
            fields.extend(field.to_le_bytes());
        }
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&fields);
        list.extend([0; 10]);
        list.extend((archive.len() as u32).to_le_bytes());
        list.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&fields);
        archive.extend(name.as_bytes());
        archive.extend(packed);
    }
    let (at, count) = (archive.len() as u32, members.len() as u16);
    archive.extend(&list);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend([(list.len() as u32).to_le_bytes(), at.to_le_bytes()].concat());
    archive.extend([0, 0]);
    archive
}

fn utf16(text: &str, is_big_endian: bool) -> Vec<u8> {
    let bytes = |unit: u16| if is_big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
}

fn opened(file: &[u8], member: Option<&str>) -> Result<(Vec<u8>, Option<Format>), String> {
    let mut opened = open(Cursor::new(file.to_vec()), member).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    opened.input.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok((bytes, opened.format))
}

#[track_caller]
fn is_json_trace(file: &[u8]) {
    let (bytes, format) = opened(file, None).unwrap();
    assert_eq!(format, Some(Format::Json), "{}", String::from_utf8_lossy(&bytes));
    let summary = json::import(&*bytes, io::sink()).unwrap();
    assert_eq!((summary.events, summary.warnings), (1, 0), "{}", String::from_utf8_lossy(&bytes));
}

//= docs/import.md#containers
#[test]
fn a_trace_is_found_in_archives() {
    let (json, log) = (json(), b"12:00 begun\n".as_slice());
    is_json_trace(&tar_of(&[("log.txt", log), ("trace.json", &json)]));
    is_json_trace(&gzipped(&tar_of(&[("trace.json.gz", &gzipped(&json)), ("log.txt", log)])));
    is_json_trace(&gzipped(&gzipped(&json)));
    is_json_trace(&zip_of(&[
        ("manifest.json", b"{\"version\":1}"),
        ("list.json", b"[]"),
        ("trace.json", &json),
    ]));
    let late = format!("{{\"metadata\":\"{}\",\"traceEvents\":[{EVENT}]}}", "x".repeat(SNIFFED_BYTES));
    is_json_trace(&zip_of(&[("manifest.json", b"{\"version\":1}"), ("trace.json", late.as_bytes())]));
    is_json_trace(&zip_of(&[("log.txt", log), ("trace.json", &json)]));
    is_json_trace(&zip_of(&[("a.tar.gz", &gzipped(&tar_of(&[("trace.json", &json)])))]));
    let (bytes, format) = opened(&zip_of(&[("log.txt", log), ("a.fxt", &trace())]), None).unwrap();
    assert_eq!((bytes, format), (trace(), None));
}

fn trace() -> Vec<u8> {
    let mut archive = Vec::new();
    json::import(&*json(), &mut archive).unwrap();
    archive
}

//= docs/import.md#containers
#[test]
fn one_of_several_traces_has_to_be_chosen() {
    let json = json();
    let within = tar_of(&[("x.json", &json), ("y.txt", TEXT.as_bytes())]);
    let members: &[(&str, &[u8])] =
        &[("a.json", &json), ("logs/b.txt", TEXT.as_bytes()), ("c.tar", &within), ("d", b"x")];
    for (file, what) in
        [(zip_of(members), "ZIP"), (tar_of(members), "tar"), (gzipped(&tar_of(members)), "tar")]
    {
        let error =
            format!("2 traces in the {what} archive, of which one has to be chosen: a.json, logs/b.txt");
        assert_eq!(opened(&file, None).unwrap_err(), error);
        assert_eq!(opened(&file, Some("logs/b.txt")).unwrap(), (TEXT.into(), Some(Format::Ftrace)));
        assert_eq!(opened(&file, Some("c.tar:x.json")).unwrap(), (json.clone(), Some(Format::Json)));
        let error = opened(&file, Some("c.tar")).unwrap_err();
        assert_eq!(error, "2 traces in the tar archive, of which one has to be chosen: x.json, y.txt");
        let error = format!("no \"e\" in the {what} archive, which has: a.json, logs/b.txt, c.tar, d");
        assert_eq!(opened(&file, Some("e")).unwrap_err(), error);
        let error = "the file is no archive, from which \"f\" could be read";
        assert_eq!(opened(&file, Some("a.json:f")).unwrap_err(), error);
    }
    let error = opened(&tar_of(&[("d", b"x"), ("e\n", b"y")]), None).unwrap_err();
    assert_eq!(error, "no trace in the tar archive, which has: d, e\\n");
}

#[test]
fn long_names_of_members_are_whole() {
    let (json, name) = (json(), "directory/".repeat(20) + "trace.json");
    for file in [tar_of(&[(&name, &json), ("b.json", &json)]), zip_of(&[(&name, &json), ("b.json", &json)])] {
        assert_eq!(opened(&file, Some(&name)).unwrap().0, json);
    }
}

//= docs/import.md#containers
#[test]
fn text_in_other_forms_is_read() {
    let list = String::from_utf8(json()).unwrap();
    for is_big_endian in [false, true] {
        is_json_trace(&utf16(&list, is_big_endian));
        is_json_trace(&gzipped(&utf16(&list, is_big_endian)));
    }
    let long = format!("[{}]", EVENT.replace("\"a\"", &format!("\"{}\"", "x\u{1f600}y".repeat(10_000))));
    assert_eq!(opened(&utf16(&long, false), None).unwrap().0, format!("\u{feff}{long}").as_bytes());
    for text in [
        format!("12:00:01 INFO recording to {{stdout}} [pid 7]\n{list}"),
        format!("[12:00:01] begun\n[12:00:02] {{\"level\":1}}\n{{\"traceEvents\":{list}}}\n"),
        format!("callback({list});\n"),
        format!(")]}}',\n{list}"),
        format!("window.trace = {{\"traceEvents\": {list}}} ; \n"),
    ] {
        is_json_trace(text.as_bytes());
        // Positions stay what they are.
        let at = text.find(EVENT).unwrap();
        let (bytes, _) = opened(text.as_bytes(), None).unwrap();
        assert_eq!(&bytes[at..at + EVENT.len()], EVENT.as_bytes());
    }
    for head in ["TRACE:\n", "capturing trace... done\nTRACE:\r\n"] {
        let file = [head.as_bytes(), &zlibbed(TEXT.as_bytes())].concat();
        assert_eq!(opened(&file, None).unwrap(), (TEXT.into(), Some(Format::Ftrace)));
        let error = opened(&file[..file.len() - 10], None).unwrap_err();
        assert_eq!(error, "the zlib data is cut off");
    }
    let plain = [b"TRACE:\n", TEXT.as_bytes()].concat();
    assert_eq!(Kind::of(&plain, true), Kind::Bare(Some(Format::Ftrace)));
}

//= docs/import.md#pages
#[test]
fn traces_in_pages_are_found_by_their_elements() {
    let list = String::from_utf8(json()).unwrap();
    let base64 = STANDARD.encode(gzipped(list.as_bytes()));
    let (one, two) = base64.split_at(20);
    for script in [
        format!("<script id=\"trace\" type=\"application/json\">{list}</script>"),
        format!("<SCRIPT  type = 'application/json' async id=t>\n {{\"traceEvents\": {list} }}\n</SCRIPT>"),
        format!("<script id=\"viewer-data\" type=\"application/json\">\n{one}\n{two}\n</script>"),
        format!("<script id=\"viewer-data\" type=\"text/plain\">\n{base64}\n</script>"),
        format!(
            "<script>\nvar json_data;\n(function() {{ json_data = {{\"traceEvents\":{list},\"s\":\"}}\\\"]\"}}\n load();\n}});</script>"
        ),
        format!(
            "<script type=\"application/json\">{{\"settings\":1}}</script><script type=\"application/json\">{list}</script>"
        ),
    ] {
        is_json_trace(
            format!(
                "<!DOCTYPE html>\n<head><script>if (1 <s) f(\"<script>\", \"# tracer:\", json_data == 1);</script></head>{script}</html>"
            )
            .as_bytes(),
        );
    }
    let page = |scripts: &str| opened(format!("\u{feff}\n<html>{scripts}</html>").as_bytes(), None);
    let part = format!("<script class=\"trace-data\" type=\"application/text\">\n{TEXT}</script>");
    assert_eq!(page(&part).unwrap(), (format!("\n{TEXT}").into(), Some(Format::Ftrace)));
    let older = "<script>\nvar linuxPerfData = \"\\\n# tracer: nop\\n\\\n app-1 [000] 0.1: 0: B|1|draw\\n\\\n\";</script>";
    let commented = older.replace("draw", "comment");
    let (bytes, format) = page(&format!("<!-- {commented} -->{older}\n# tracer: nop\n")).unwrap();
    let mut archive = Vec::new();
    format.unwrap().import(&*bytes, &mut archive).unwrap();
    let lines = crate::import::testing::lines(&archive);
    assert_eq!(lines.last().unwrap(), r#"0.100000000 begin 1/1 "atrace" "draw""#);
    assert!(!lines.iter().any(|line| line.contains("comment")), "{lines:?}");
    // What is in a comment, or is the text of another element, is no script.
    let other = format!(
        "<!-- {part} --><!--><!---><textarea><script type=application/json>{list}</script></textarea>"
    );
    let title = "<TITLE><script type=text/plain></TITLE><!-- > -- --!><titles>";
    assert_eq!(
        page(&format!("{other}{title}{part}")).unwrap(),
        (format!("\n{TEXT}").into(), Some(Format::Ftrace))
    );
    assert_eq!(page(&format!("<!-- -- >{part}")).unwrap_err(), "no trace in the page, which has: nothing");
    let error = page(&format!("{part}{part}")).unwrap_err();
    assert_eq!(error, "2 traces in the page, of which one has to be chosen: trace-data, trace-data-2");
    for (scripts, names) in
        [("", "nothing"), ("<script id=x type=text/plain>hello</script><script>json_data=1</script>", "x")]
    {
        assert_eq!(page(scripts).unwrap_err(), format!("no trace in the page, which has: {names}"));
    }
}

//= docs/import.md#pages
#[test]
fn pages_are_recognized_by_their_first_tag() {
    let script = format!("<script type=application/json>[{EVENT}]</script>");
    for begin in [
        "<!DOCTYPE html>",
        "\u{feff}<!doctype HTML PUBLIC \"-\">",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE html>",
        "\u{feff}\n<!-- saved from url=(0014)about:internet -->\n<!----><html>",
        "<html lang=en>",
        "<HEAD>",
        "<body\n>",
        "<title>x</title>",
        "<meta charset=utf-8>",
        "",
    ] {
        is_json_trace(format!("{begin}{script}").as_bytes());
    }
    for other in
        ["<headline>", "<!-- <html>", "<?xml version=\"1.0\"?><trace>", "<idle>-0 [000] 0.1: x: y", "<"]
    {
        assert!(!page::is_page(other.as_bytes()), "{other}");
    }
}

//= docs/import.md#containers
#[test]
fn layers_and_members_are_limited() {
    let mut file = json();
    for _ in 0..MAX_DEPTH {
        file = zip_of(&[("a", &file)]);
    }
    is_json_trace(&file);
    assert_eq!(
        opened(&zip_of(&[("a", &file)]), None).unwrap_err(),
        "more than 8 containers inside each other; unpack the outer ones first"
    );
    let names: Vec<String> = (0..=10_000).map(|number| number.to_string()).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, b"x".as_slice())).collect();
    for (file, what) in [(zip_of(&members), "ZIP"), (tar_of(&members), "tar")] {
        let error = format!("the {what} archive has more than 10000 members");
        assert_eq!(opened(&file, None).unwrap_err(), error);
    }
}

#[test]
fn growth_through_all_layers_is_limited() {
    let outermost = Outermost::default();
    let mut counted = outermost.counted(io::repeat(b' ').take(1 << 20));
    io::copy(&mut counted, &mut io::sink()).unwrap();
    let mut bounded = Bounded::new(io::repeat(b' '), &outermost);
    let mut bytes = vec![0; 1 << 20];
    let mut read = 0;
    let error = loop {
        match bounded.read(&mut bytes) {
            Ok(length) => read += length as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(read, 1 << 30);
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let outermost = Outermost::default();
    let mut counted = outermost.counted(&b"x"[..]);
    io::copy(&mut counted, &mut io::sink()).unwrap();
    let mut bounded = Bounded::new(io::repeat(b' ').take(1 << 30), &outermost);
    assert_eq!(io::copy(&mut bounded, &mut io::sink()).unwrap(), 1 << 30);
}

#[test]
fn damage_is_an_error() {
    let file = zip_of(&[("a.json", &json())]);
    let mut damaged = file.clone();
    // The checksum, in the list.
    let list = memchr::memmem::find(&file, b"PK\x01\x02").unwrap();
    damaged[list + 16] ^= 1;
    assert_eq!(opened(&damaged, None).unwrap_err(), "bad ZIP data: wrong checksum");
    // Without its header, the first member is not even known.
    let error = opened(&file[..20], None).unwrap_err();
    assert!(error.starts_with("bad ZIP archive: "), "{error}");
}

//= docs/import.md#containers
#[test]
fn damage_of_members_is_noticed() {
    // Stored, with the checksum in the list.
    let mut file = zip_of(&[("a.json", &json())]);
    let (packed, crc) = deflated(&json());
    let stored = memchr::memmem::find(&file, &packed).unwrap();
    let length = (json().len() as u32).to_le_bytes();
    file.splice(stored..stored + packed.len(), json());
    for header in [&b"PK\x03\x04"[..], b"PK\x01\x02"] {
        let fields = memchr::memmem::find(&file, &crc.to_le_bytes()[..]).map(|_| header);
        let at = memchr::memmem::find(&file, fields.unwrap()).unwrap();
        let (method, sizes) = if header[2] == 3 { (at + 8, at + 18) } else { (at + 10, at + 20) };
        file[method] = 0;
        file[sizes..sizes + 4].copy_from_slice(&length);
    }
    let list = memchr::memmem::rfind(&file, b"PK\x05\x06").unwrap();
    let at = memchr::memmem::find(&file, b"PK\x01\x02").unwrap() as u32;
    file[list + 16..list + 20].copy_from_slice(&at.to_le_bytes());
    assert_eq!(opened(&file, None).unwrap(), (json(), Some(Format::Json)));
    let place = memchr::memmem::find(&file, b"\"dur\":2").unwrap() + 6;
    file[place] = b'3';
    assert_eq!(opened(&file, None).unwrap_err(), "bad ZIP data: wrong checksum");

    // Another member is a trace.
    let other = [b" ".repeat(1000), json()].concat();
    let mut file = zip_of(&[("a.json", &json()), ("b.json", &other)]);
    let place = memchr::memmem::find(&file, &packed).unwrap();
    file[place + 1] ^= 0xff;
    let found = open(Cursor::new(file.clone()), None).unwrap();
    assert_eq!(found.remarks, ["passed over: a.json (is damaged)"]);
    assert!(opened(&file, Some("a.json")).is_err());
    // A tar archive that ends with a member may have had others.
    let mut file = tar_of(&[("a.json", &json())]);
    assert!(opened(&file, None).is_ok());
    file.truncate(1024);
    assert_eq!(opened(&file, None).unwrap_err(), "the tar archive is cut off");
}

/// Encrypted, or compressed with LZMA.
//= docs/import.md#containers
#[test]
fn members_that_cannot_be_read_are_named() {
    let json = json();
    for (place, value, why) in
        [(8, 1, "is encrypted"), (10, 14, "is compressed with another method than deflate")]
    {
        let mut only = zip_of(&[("a.json", &json)]);
        let list = memchr::memmem::find(&only, b"PK\x01\x02").unwrap();
        only[list + place] = value;
        let names = format!("a.json ({why}; `7z x` unpacks it)");
        let error = opened(&only, None).unwrap_err();
        assert_eq!(error, format!("no trace in the ZIP archive, which has: {names}"));
        let error = opened(&only, Some("a.json")).unwrap_err();
        assert_eq!(error, format!("bad ZIP archive: a.json {why}; `7z x` unpacks it"));
        let mut both = zip_of(&[("a.json", &json), ("b.json", &json)]);
        let list = memchr::memmem::find(&both, b"PK\x01\x02").unwrap();
        both[list + place] = value;
        let opened = open(Cursor::new(both.clone()), None).unwrap();
        assert_eq!(opened.remarks, [format!("passed over: {names}")]);
        is_json_trace(&both);
        assert!(open(Cursor::new(both), Some("b.json")).unwrap().remarks.is_empty());
    }
}

//= docs/import.md#containers
#[test]
fn members_of_one_name_have_names_of_their_own() {
    let (json, other) = (json(), format!("[{EVENT},{EVENT}]"));
    let members: &[(&str, &[u8])] = &[("a.json", &json), ("a.json", other.as_bytes())];
    for (file, what) in [(zip_of(members), "ZIP"), (tar_of(members), "tar")] {
        let error =
            format!("2 traces in the {what} archive, of which one has to be chosen: a.json, a.json-2");
        assert_eq!(opened(&file, None).unwrap_err(), error);
        assert_eq!(opened(&file, Some("a.json")).unwrap().0, json);
        assert_eq!(opened(&file, Some("a.json-2")).unwrap().0, other.as_bytes());
    }
}

/// An archive without a list, in which sizes are behind the members.
fn zip_stream_of(members: &[(&str, &[u8])], has_signature: bool) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in members {
        let (packed, crc) = deflated(bytes);
        archive.extend(b"PK\x03\x04\x14\x00\x08\x00\x08\x00");
        archive.extend([0; 16]);
        archive.extend((name.len() as u16).to_le_bytes());
        archive.extend([0, 0]);
        archive.extend(name.as_bytes());
        archive.extend(&packed);
        archive.extend(if has_signature { &b"PK\x07\x08"[..] } else { b"" });
        for field in [crc, packed.len() as u32, bytes.len() as u32] {
            archive.extend(field.to_le_bytes());
        }
    }
    archive
}

/// What is read before an error, and the error.
fn read_of(file: &[u8], member: Option<&str>) -> (Vec<u8>, String) {
    let mut opened = open(Cursor::new(file.to_vec()), member).unwrap();
    let mut bytes = Vec::new();
    let error = opened.input.read_to_end(&mut bytes).err();
    (bytes, error.map(|error| error.to_string()).unwrap_or_default())
}

//= docs/import.md#containers
#[test]
fn what_is_before_a_cut_is_read() {
    let mut noise = 1_u64;
    let events: Vec<String> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        EVENT.replace("\"a\"", &format!("\"{noise}\""))
    })
    .take(5000)
    .collect();
    let json = format!("[{}]", events.join(",\n")).into_bytes();
    let log = b"12:00 begun\n".as_slice();
    let members: &[(&str, &[u8])] = &[("log.txt", log), ("a.json", &json)];
    let packed: &[(&str, &[u8])] = &[("a.json.gz", &gzipped(&json))];
    let page =
        format!("<html><script id=a type=text/plain>{}</script></html>", STANDARD.encode(gzipped(&json)));
    let plain_page = [b"<html><script id=a type=application/json>", &*json, b"</script></html>"].concat();
    let list = "the ZIP archive is cut off, or the list of its members is damaged";
    for (file, problem) in [
        (gzipped(&tar_of(members)), "the gzip data is cut off"),
        (gzipped(&page.clone().into_bytes()), "the gzip data is cut off"),
        (gzipped(&plain_page), "the gzip data is cut off"),
        (gzipped(&zip_of(members)), "the gzip data is cut off"),
        (page.into_bytes(), "the page is cut off"),
        (plain_page, "the page is cut off"),
        (tar_of(members), "the tar archive is cut off"),
        (tar_of(packed), "the tar archive is cut off"),
        (zip_of(members), "the ZIP archive is cut off"),
        (zip_of(packed), "the ZIP archive is cut off"),
        (zip_stream_of(members, true), list),
        (zip_stream_of(members, false), list),
    ] {
        let (bytes, error) = read_of(&file[..file.len() / 2], None);
        let is_half = (json.len() / 3..json.len() * 2 / 3).contains(&bytes.len());
        assert!(is_half && json.starts_with(&bytes), "{problem}: {} of {}", bytes.len(), json.len());
        assert_eq!(error, problem);
    }
    // The member is whole.
    for has_signature in [false, true] {
        let stream = zip_stream_of(&[("a.json", &json), ("log.txt", log)], has_signature);
        assert_eq!(read_of(&stream, None), (json.clone(), list.to_owned()));
        let mut damaged = stream;
        let place = damaged.len() / 2;
        damaged[place] ^= 1;
        let (bytes, error) = read_of(&damaged, None);
        assert!(bytes.len() > json.len() / 3 && bytes != json && error == list, "{}: {error}", bytes.len());
    }
    let archive = zip_of(&[("a.json", &json), ("b.json", &json), ("c.txt", log)]);
    let end = memchr::memmem::find(&archive, b"PK\x01\x02").unwrap();
    assert_eq!(read_of(&archive[..end], Some("b.json")), (json.clone(), list.to_owned()));
    // Nothing was found before the cut.
    let file = gzipped(&tar_of(&[("log.txt", &json), ("a.json", &json)]));
    assert_eq!(opened(&file[..1000], Some("a.json")).unwrap_err(), "the gzip data is cut off");
}

/// Each bit is another one, and each length is cut: there is an error, or some trace, and no panic.
#[test]
fn any_damage_is_survived() {
    let json = json();
    let page =
        format!("<html><script id=viewer-data type=text/plain>{}</script>", STANDARD.encode(gzipped(&json)));
    let files = [
        zip_of(&[("log.txt", b"begun"), ("a.json", &json)]),
        gzipped(&tar_of(&[("a.json", &json)])),
        page.into_bytes(),
        [b"TRACE:\n", &*zlibbed(TEXT.as_bytes())].concat(),
        format!("call([{EVENT}]);").into_bytes(),
        utf16(&format!("[{EVENT}]"), true),
    ];
    let (mut read, mut failed) = (0, 0);
    let mut survive = |bytes: &[u8]| match opened(bytes, None) {
        Ok((bytes, Some(format))) => {
            let _ = format.import(&*bytes, io::sink());
            read += 1;
        }
        Ok((_, None)) => read += 1,
        Err(_) => failed += 1,
    };
    for file in files {
        for cut in 0..file.len() {
            survive(&file[..cut]);
        }
        let mut damaged = file.clone();
        for bit in 0..damaged.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            survive(&damaged);
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(read > 1000 && failed > 1000, "{read} and {failed}");
}

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
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let mut fields = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for field in [crc.sum(), packed.len() as u32, bytes.len() as u32] {
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
    let (bytes, format) = page(older).unwrap();
    let mut archive = Vec::new();
    format.unwrap().import(&*bytes, &mut archive).unwrap();
    let lines = crate::import::testing::lines(&archive);
    assert_eq!(lines.last().unwrap(), r#"0.100000000 begin 1/1 "atrace" "draw""#);
    let error = page(&format!("{part}{part}")).unwrap_err();
    assert_eq!(error, "2 traces in the page, of which one has to be chosen: trace-data, trace-data-2");
    for (scripts, names) in
        [("", "nothing"), ("<script id=x type=text/plain>hello</script><script>json_data=1</script>", "x")]
    {
        assert_eq!(page(scripts).unwrap_err(), format!("no trace in the page, which has: {names}"));
    }
}

//= docs/import.md#containers
#[test]
fn layers_and_members_are_limited() {
    let mut file = json();
    for _ in 0..MAX_DEPTH - 1 {
        file = zip_of(&[("a", &file)]);
    }
    is_json_trace(&file);
    assert_eq!(
        opened(&zip_of(&[("a", &file)]), None).unwrap_err(),
        "more than 8 layers of containers inside each other"
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
    assert!(error.to_string().contains("more than 1000 times its size"), "{error}");
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
    assert_eq!(opened(&damaged, None).unwrap_err(), "bad deflate data: wrong checksum");
    let error = opened(&file[..file.len() - 30], None).unwrap_err();
    assert!(error.starts_with("bad ZIP archive: "), "{error}");
    let mut encrypted = file;
    encrypted[list + 8] |= 1;
    assert_eq!(opened(&encrypted, None).unwrap_err(), "no trace in the ZIP archive, which has: a.json");
    assert_eq!(opened(&encrypted, Some("a.json")).unwrap_err(), "bad ZIP archive: a.json is encrypted");
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

//! Types of the standard library as arguments.

use crate::support::Trace;
use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use trace_engine::{Scope, instant};

#[test]
fn types_of_the_standard_library_are_arguments() {
    let trace = Trace::start(64 << 10, &[]);
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let error = std::io::Error::other("no luck");
    let error: &(dyn Error + 'static) = &error;
    instant!("std", "numbers", Scope::Thread,
        "some" => Some(7_u32), "none" => None::<&str>, "text" => Some("text"), "nested" => Some(None::<i64>),
        "time" => Duration::from_micros(3), "long" => Duration::MAX, "large" => u128::MAX, "negative" => -1_i128);
    instant!("std", "texts", Scope::Thread,
        "char" => 'ß', "path" => Path::new("/tmp/a"), "odd" => OsStr::from_bytes(b"a\xffb"),
        "cow" => Cow::Borrowed("cow"), "address" => address, "host" => Ipv4Addr::LOCALHOST, "error" => error,
        "bytes" => &vec![1_u8, 2], "slice" => [1.5, 2.0].as_slice(), "names" => ["a", "b"].as_slice());
    let read = trace.stop();
    let arguments = |index: usize| -> Vec<(&str, &str)> {
        read.events[index].args.iter().map(|(name, value)| (&**name, &**value)).collect()
    };
    let expected = [
        ("some", "Uint32(7)"),
        ("none", "Null"),
        ("text", "\"text\""),
        ("nested", "Null"),
        ("time", "Uint64(3000)"),
        ("long", "Uint64(18446744073709551615)"),
        ("large", "\"340282366920938463463374607431768211455\""),
        ("negative", "\"-1\""),
    ];
    assert_eq!(arguments(0), expected);
    let expected = [
        ("char", "\"ß\""),
        ("path", "\"/tmp/a\""),
        ("odd", "\"a\u{fffd}b\""),
        ("cow", "\"cow\""),
        ("address", "\"127.0.0.1:80\""),
        ("host", "\"127.0.0.1\""),
        ("error", "\"no luck\""),
        ("bytes", "[1, 2]"),
        ("slice", "\"[1.5, 2.0]\""),
        ("names", "\"[\\\"a\\\", \\\"b\\\"]\""),
    ];
    assert_eq!(arguments(1), expected);
    assert_eq!(read.findings.bad_records, 0);
}

use super::*;
use crate::mcp::tools::{INSTRUCTIONS, definitions};
use proptest::prelude::*;

fn protocol() -> Protocol {
    Protocol::new(definitions(false), INSTRUCTIONS)
}

/// After the handshake of a version.
fn begun(version: &str) -> Protocol {
    let mut protocol = protocol();
    let request =
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version}});
    assert_eq!(sent(&mut protocol, &request)[0]["result"]["protocolVersion"], *version);
    assert_eq!(
        sent(&mut protocol, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        [] as [Value; 0]
    );
    protocol
}

fn steps(protocol: &mut Protocol, line: &str) -> Vec<Step> {
    protocol.line(&Line::Whole(line.as_bytes().to_vec()))
}

/// The responses to a message that leads to no call.
fn sent(protocol: &mut Protocol, message: &Value) -> Vec<Value> {
    let parsed = |step| match step {
        Step::Send(line) => serde_json::from_str(&line).unwrap(),
        step => panic!("{step:?}"),
    };
    steps(protocol, &message.to_string()).into_iter().map(parsed).collect()
}

fn code(protocol: &mut Protocol, line: &str) -> (i64, Value) {
    let steps = steps(protocol, line);
    let [Step::Send(response)] = steps.as_slice() else { panic!("{line}: {steps:?}") };
    let response: Value = serde_json::from_str(response).unwrap();
    (response["error"]["code"].as_i64().unwrap(), response["id"].clone())
}

fn call(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "overview"}})
}

fn called(protocol: &mut Protocol, message: &Value) -> u64 {
    let steps = steps(protocol, &message.to_string());
    let [Step::Call(call)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(call.tool, "overview");
    call.number
}

//= docs/mcp.md#protocol
#[test]
fn a_version_is_agreed_on() {
    for version in VERSIONS {
        begun(version);
    }
    let mut protocol = protocol();
    let ask = |version: &str| json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": version}});
    assert_eq!(
        code(&mut protocol, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string()).0,
        -32600
    );
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(sent(&mut protocol, &ping), [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
    assert_eq!(sent(&mut protocol, &ask("1999-01-01"))[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(code(&mut protocol, &ask("2025-11-25").to_string()), (-32600, json!("a")));
    assert_eq!(
        sent(&mut protocol, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))[0]["result"]["tools"]
            [3]["name"],
        "query"
    );
}

//= docs/mcp.md#protocol
#[test]
fn a_request_may_name_its_version_instead() {
    let mut protocol = protocol();
    let ask = |method: &str, version: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "overview", "_meta": {VERSION_KEY: version}}});
    let found = &sent(&mut protocol, &ask("server/discover", STATELESS))[0]["result"];
    assert_eq!(
        (&found["supportedVersions"][0], &found["resultType"]),
        (&json!(STATELESS), &json!("complete"))
    );
    assert_eq!(sent(&mut protocol, &ask("tools/list", STATELESS))[0]["result"]["cacheScope"], "private");
    let number = called(&mut protocol, &ask("tools/call", STATELESS));
    let response: Value = serde_json::from_str(&protocol.finish(number, Ok("x".into())).unwrap()).unwrap();
    assert_eq!(response["result"]["resultType"], "complete");
    assert_eq!(code(&mut protocol, &ask("tools/list", "2027-01-01").to_string()).0, -32022);
    assert_eq!(code(&mut protocol, &ask("ping", STATELESS).to_string()).0, -32601);
    let without = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"});
    assert_eq!(code(&mut protocol, &without.to_string()).0, -32601);
}

//= docs/mcp.md#protocol
#[test]
fn errors_have_their_codes() {
    let mut protocol = begun("2025-06-18");
    for (line, expected) in [
        ("{", (-32700, Value::Null)),
        ("\u{0}", (-32700, Value::Null)),
        ("7", (-32600, Value::Null)),
        ("[]", (-32600, Value::Null)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, (-32600, Value::Null)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, (-32600, json!(1))),
        (r#"{"id":1,"method":"ping"}"#, (-32600, json!(1))),
        (r#"{"jsonrpc":"2.0","id":1}"#, (-32600, json!(1))),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, (-32600, Value::Null)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, (-32600, Value::Null)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, (-32600, Value::Null)),
        (r#"{"jsonrpc":"2.0","id":"x","method":"nothing"}"#, (-32601, json!("x"))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, (-32602, json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#, (-32602, json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, (-32602, json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"record"}}"#, (-32602, json!(1))),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"top","arguments":1}}"#,
            (-32602, json!(1)),
        ),
    ] {
        assert_eq!(code(&mut protocol, line), expected, "{line}");
    }
    let of_length =
        |length| format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"nothing"}}"#, "x".repeat(length));
    assert_eq!(code(&mut protocol, &of_length(MAX_ID_BYTES + 1)), (-32600, Value::Null));
    let longest = json!("x".repeat(MAX_ID_BYTES));
    assert_eq!(code(&mut protocol, &of_length(MAX_ID_BYTES)), (-32601, longest));
    let Step::Send(response) = &protocol.line(&Line::TooLong)[0] else { panic!() };
    assert!(response.contains("-32600"), "{response}");
    // What needs no answer has none.
    for line in [
        "",
        "  ",
        r#"{"jsonrpc":"2.0","method":"nothing"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert_eq!(steps(&mut protocol, line), [], "{line}");
    }
}

//= docs/mcp.md#protocol
#[test]
fn calls_are_answered_once_unless_they_are_cancelled() {
    let mut protocol = begun("2025-11-25");
    let first = called(&mut protocol, &call(1));
    assert_eq!(code(&mut protocol, &call(1).to_string()).0, -32600);
    let second = called(&mut protocol, &call(2));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        .to_string();
    assert_eq!(steps(&mut protocol, &cancel), [Step::Cancel(first)]);
    assert_eq!(steps(&mut protocol, &cancel), []);
    assert_eq!(protocol.finish(first, Ok("late".into())), None);
    let response: Value =
        serde_json::from_str(&protocol.finish(second, Err(Refused("no".into()))).unwrap()).unwrap();
    let expected = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    assert_eq!((&response["id"], &response["result"]), (&json!(2), &expected));
    assert_eq!(protocol.finish(second, Ok("again".into())), None);
    for id in 0..MAX_CALLS as u32 {
        called(&mut protocol, &call(id));
    }
    assert_eq!(code(&mut protocol, &call(99).to_string()), (-32000, json!(99)));
}

//= docs/mcp.md#protocol
#[test]
fn a_batch_is_answered_as_one() {
    let mut protocol = begun(BATCHES);
    let messages = json!([
        call(1), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7,
        {"jsonrpc": "2.0", "id": 2, "method": "ping"}, call(3), {"jsonrpc": "2.0", "id": 4, "method": "initialize"},
    ]);
    let steps_of_batch = steps(&mut protocol, &messages.to_string());
    let [Step::Call(first), Step::Call(second)] = steps_of_batch.as_slice() else {
        panic!("{steps_of_batch:?}")
    };
    assert_eq!(protocol.finish(first.number, Ok("one".into())), None);
    let response: Value =
        serde_json::from_str(&protocol.finish(second.number, Ok("two".into())).unwrap()).unwrap();
    let ids: Vec<&Value> = response.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&Value::Null, &json!(2), &json!(4), &json!(1), &json!(3)]);
    // What is cancelled is missing in it.
    let steps_of_batch = steps(&mut protocol, &json!([call(1), call(2)]).to_string());
    let [Step::Call(first), Step::Call(_)] = steps_of_batch.as_slice() else { panic!("{steps_of_batch:?}") };
    assert_eq!(protocol.finish(first.number, Ok("one".into())), None);
    let cancel = r#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}]"#;
    let steps_of_cancel = steps(&mut protocol, cancel);
    let [Step::Cancel(_), Step::Send(response)] = steps_of_cancel.as_slice() else {
        panic!("{steps_of_cancel:?}")
    };
    assert!(response.starts_with('[') && response.contains("one"), "{response}");
    assert_eq!(steps(&mut protocol, r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#), []);
    assert_eq!(code(&mut protocol, "[]").0, -32600);
    assert!(protocol.pending.is_empty() && protocol.batches.is_empty());
}

/// Values that are often what the protocol has.
fn value() -> impl Strategy<Value = Value> {
    let words = [
        "2.0",
        "ping",
        "initialize",
        "tools/call",
        "tools/list",
        "server/discover",
        "notifications/cancelled",
        "overview",
        "top",
        STATELESS,
        BATCHES,
        "2025-11-25",
        "1.0",
        "\u{0}",
        "\u{202e}",
    ];
    let keys = [
        "jsonrpc",
        "id",
        "method",
        "params",
        "name",
        "arguments",
        "_meta",
        VERSION_KEY,
        "protocolVersion",
        "requestId",
        "cursor",
        "result",
        "error",
        "trace",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![8 => prop::sample::select(keys.to_vec()).prop_map(str::to_owned), 1 => ".{0,4}"];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..7)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Messages that are requests more often than not.
fn message() -> impl Strategy<Value = Value> {
    let methods =
        ["ping", "initialize", "tools/call", "tools/list", "server/discover", "notifications/cancelled"];
    let request = (0..6_i64, prop::sample::select(methods.to_vec()), value(), any::<bool>());
    let request = request.prop_map(|(id, method, params, is_call)| {
        let params = if is_call { json!({"name": "overview", "requestId": id}) } else { params };
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    });
    let one = prop_oneof![3 => request, 1 => value()];
    prop_oneof![3 => one.clone(), 1 => prop::collection::vec(one, 0..6).prop_map(Value::from)]
}

/// Checks a response, and what it may answer.
fn check(line: &str) {
    assert!(!line.contains('\n'));
    let response: Value = serde_json::from_str(line).unwrap();
    let all = response.as_array().cloned().unwrap_or_else(|| vec![response]);
    assert!(!all.is_empty());
    for one in all {
        assert_eq!(one["jsonrpc"], "2.0");
        assert!(one.get("result").is_some() != one.get("error").is_some());
        assert!(one.as_object().unwrap().contains_key("id"));
        assert!(one.to_string().len() < crate::mcp::answer::MAX_BYTES);
    }
}

proptest! {
    //= docs/mcp.md#protocol
    #[test]
    fn any_lines_are_answered_by_messages_and_leave_nothing_behind(
        version in prop::option::of(prop::sample::select(VERSIONS.to_vec())),
        messages in prop::collection::vec(message(), 0..12),
        answered in any::<u16>(),
    ) {
        let mut protocol = version.map_or_else(protocol, begun);
        let mut calls = Vec::new();
        for (number, message) in messages.iter().enumerate() {
            for step in steps(&mut protocol, &message.to_string()) {
                match step {
                    Step::Send(line) => check(&line),
                    Step::Call(call) => calls.push(call.number),
                    Step::Cancel(number) => prop_assert!(calls.contains(&number)),
                }
            }
            if answered >> number & 1 == 1 && let Some(call) = calls.pop() {
                protocol.finish(call, Ok("text".into())).iter().for_each(|line| check(line));
            }
            prop_assert!(protocol.pending.len() <= MAX_CALLS);
        }
        for call in calls {
            protocol.finish(call, Ok("text".into())).iter().for_each(|line| check(line));
        }
        prop_assert!(protocol.pending.is_empty() && protocol.batches.is_empty());
    }

    #[test]
    fn any_bytes_are_answered_by_messages(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,80}") {
        let mut protocol = begun(BATCHES);
        for line in [bytes, text.into_bytes()] {
            for step in protocol.line(&Line::Whole(line)) {
                if let Step::Send(line) = step {
                    check(&line);
                }
            }
        }
    }
}

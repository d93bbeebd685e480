//! Triggers: conditions and their actions, as they are written on the command line and in files.
//= docs/recording.md#triggers

use super::values::{FileSize, Span};
use crate::args::bad_value::BadValue;
use std::fmt;
use std::str::FromStr;
use trace_analysis::assertion::{Assertion, Comparison, Function, Operator, Selector, Source, Value};
use trace_protocol::limits::MAX_ALERT_NAME_BYTES;

/// `CONDITION:ACTION`, split at the last colon.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// What triggers it.
    pub condition: Condition,
    /// The action.
    pub action: Action,
    /// How long the recording goes on before it ends.
    pub delay: Option<Span>,
}

/// What triggers an action.
//= docs/recording.md#triggers
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A program raises the alert with this name.
    Alert(String),
    /// This command receives a signal.
    Signal(UserSignal),
    /// The processes of a program hold more memory than this.
    Memory {
        /// The name of the program.
        program: String,
        /// The limit.
        limit: FileSize,
    },
    /// Durations of the last seconds exceed a limit.
    Durations(DurationLimit),
    /// A duration has not ended, and has lasted longer than a limit.
    Open(OpenLimit),
}

/// A time that a duration may last before it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLimit {
    /// Of these durations.
    pub selector: Selector,
    /// The time, in nanoseconds.
    pub limit: f64,
    /// As the limit of the longest of them.
    comparison: Comparison,
}

/// A value of the durations of the last seconds that is greater than a limit, as an assertion has it.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationLimit {
    /// What is computed.
    pub function: Function,
    /// Of these durations.
    pub selector: Selector,
    /// The limit, in nanoseconds where it is a time.
    pub limit: f64,
    comparison: Comparison,
}

/// A signal that means nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSignal {
    Usr1,
    Usr2,
}

/// The action that an alert triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The recording ends.
    Stop,
    /// The data in the buffers is written into a file of its own.
    Snapshot,
    /// Programs write down what they use memory for.
    DumpMemory,
}

impl FromStr for Trigger {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (condition, action) =
            text.rsplit_once(':').filter(|(before, _)| !before.is_empty()).ok_or_else(|| {
                "expected CONDITION:ACTION, such as stall:stop, SIGUSR2:snapshot, 'rss(app)>1GB:stop' or \
                 'p99(app:frame)>16ms:snapshot'"
                    .to_owned()
            })?;
        let condition = condition.parse()?;
        let (action, delay) = match action.split_once('+') {
            Some((action @ ("stop" | "terminate"), delay)) => (action, Some(delay.parse()?)),
            _ => (action, None),
        };
        let action = match action {
            // ffx uses this name.
            "stop" | "terminate" => Action::Stop,
            "snapshot" => Action::Snapshot,
            "dump-memory" => Action::DumpMemory,
            other => {
                return Err(format!("the action is {other:?}, expected stop, snapshot or dump-memory").into());
            }
        };
        Ok(Self { condition, action, delay })
    }
}

impl FromStr for Condition {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "SIGUSR1" => return Ok(Self::Signal(UserSignal::Usr1)),
            "SIGUSR2" => return Ok(Self::Signal(UserSignal::Usr2)),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix("rss(") {
            let parts = rest.rsplit_once('>').and_then(|(program, limit)| {
                let program = program.trim_end().strip_suffix(')').filter(|program| !program.is_empty())?;
                Some((program.to_owned(), limit.trim_start().parse().ok()?))
            });
            let (program, limit) =
                parts.ok_or_else(|| "expected rss(PROGRAM)>SIZE, such as 'rss(app)>1GB:stop'".to_owned())?;
            return Ok(Self::Memory { program, limit });
        }
        if text.starts_with("open(") {
            return text.parse().map(Self::Open);
        }
        if DurationLimit::is_meant(text) {
            return text.parse().map(Self::Durations);
        }
        // `p-1(frame)>1s` would be an alert that is never raised.
        if text.contains('(') && text.contains(['<', '>']) {
            return Err(format!(
                "{text:?} is no condition, such as 'p99(app:frame)>16ms' or 'open(app:frame)>1s'"
            )
            .into());
        }
        if text.len() > MAX_ALERT_NAME_BYTES {
            return Err(
                format!("the alert's name has {} bytes, at most {MAX_ALERT_NAME_BYTES}", text.len()).into()
            );
        }
        Ok(Self::Alert(text.to_owned()))
    }
}

impl DurationLimit {
    /// Whether a text is meant to be one: an alert's name does not look like that.
    fn is_meant(text: &str) -> bool {
        text.split_once('(').is_some_and(|(function, _)| {
            let is_percentile = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit());
            ["count", "rate", "sum", "min", "max", "mean"].contains(&function.trim_end())
                || function.strip_prefix('p').is_some_and(is_percentile)
        })
    }
}

impl FromStr for DurationLimit {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let expected = |what: &str| {
            format!("{what}, such as 'p99(app:frame)>16ms:snapshot': count, sum, max, mean or a percentile")
        };
        let parsed = Assertion::parse(text).map_err(|error| error.to_string())?;
        match parsed {
            Assertion::Comparison(comparison) => match &comparison {
                Comparison {
                    value: Value::Of(function, Source::Events(selector)),
                    operator: Operator::Greater,
                    limit,
                } if !matches!(function, Function::Rate | Function::Min) => Ok(Self {
                    function: *function,
                    selector: selector.clone(),
                    limit: limit.base(),
                    comparison,
                }),
                _ => Err(expected("expected a limit that durations exceed").into()),
            },
            Assertion::And(_) | Assertion::Or(_) => Err(expected("expected one limit").into()),
        }
    }
}

impl FromStr for OpenLimit {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let rest = text.strip_prefix("open(").unwrap_or_default();
        // It is written as the limit of the longest one.
        let parsed: Result<DurationLimit, _> = format!("max({rest}").parse();
        let expected =
            || "expected a time that no duration may be open for, such as 'open(app:frame)>100ms:stop'";
        let DurationLimit { selector, limit, comparison, .. } = parsed.map_err(|_| expected().to_owned())?;
        if limit <= 0.0 {
            return Err(format!("{}, above 0", expected()).into());
        }
        Ok(Self { selector, limit, comparison })
    }
}

impl fmt::Display for OpenLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.comparison.to_string();
        write!(f, "open{}", text.strip_prefix("max").unwrap_or(&text))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alert(name) => f.write_str(name),
            Self::Signal(UserSignal::Usr1) => f.write_str("SIGUSR1"),
            Self::Signal(UserSignal::Usr2) => f.write_str("SIGUSR2"),
            Self::Memory { program, limit } => write!(f, "rss({program})>{limit}"),
            Self::Durations(limit) => write!(f, "{}", limit.comparison),
            Self::Open(limit) => write!(f, "{limit}"),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Stop => "stop",
            Action::Snapshot => "snapshot",
            Action::DumpMemory => "dump-memory",
        };
        write!(f, "{}:{action}", self.condition)?;
        self.delay.map_or(Ok(()), |delay| write!(f, "+{delay}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn wrong(text: &str) -> String {
        text.parse::<Trigger>().unwrap_err().to_string()
    }

    #[test]
    fn what_looks_like_a_condition_is_no_name_of_an_alert() {
        for text in
            ["p-1(frame)>1s", "pnan(frame)>1s", "p 9(f)>1s", "P99(frame)>16ms", "longest(frame) > 16ms"]
        {
            let expected = format!("{text:?} is no condition, such as ");
            assert!(wrong(&format!("{text}:stop")).starts_with(&expected), "{text}");
        }
        assert!("a(b)c:stop".parse::<Trigger>().is_ok());
    }

    #[test]
    fn triggers_are_split_at_the_last_colon() {
        let trigger: Trigger = "a:b:snapshot".parse().unwrap();
        let condition = Condition::Alert("a:b".to_owned());
        assert_eq!((trigger.condition, trigger.action), (condition, Action::Snapshot));
        let trigger: Trigger = "a:dump-memory".parse().unwrap();
        assert_eq!((trigger.to_string().as_str(), trigger.action), ("a:dump-memory", Action::DumpMemory));
        assert_eq!("x:terminate".parse::<Trigger>().unwrap().action, Action::Stop);
        let delayed: Trigger = "a+b:stop+1500ms".parse().unwrap();
        assert_eq!(delayed.delay, Some(Span(Duration::from_millis(1500))));
        assert_eq!(delayed.to_string(), "a+b:stop+1500ms");
        for text in ["a:stop+", "a:stop+0s", "a:stop+soon", "a:stop+-1s"] {
            assert!(wrong(text).starts_with("expected a time above 0"), "{text}");
        }
        assert!(wrong("a:snapshot+5s").starts_with("the action is \"snapshot+5s\", expected stop, "));
        for text in ["", "stall", ":stop"] {
            assert!(
                wrong(text).starts_with("expected CONDITION:ACTION, such as stall:stop, SIGUSR2:snapshot,")
            );
        }
        for text in
            ["SIGUSR1:stop", "SIGUSR2:snapshot", "rss(app)>1GB:stop", "rss(a:b (2))>64KiB:dump-memory"]
        {
            let trigger: Trigger = text.parse().unwrap();
            assert!(!matches!(trigger.condition, Condition::Alert(_)), "{text}");
            assert_eq!(trigger.to_string(), text);
        }
        let trigger: Trigger = "rss(app) > 1:stop".parse().unwrap();
        let limit = FileSize(1 << 20);
        assert_eq!(trigger.condition, Condition::Memory { program: "app".to_owned(), limit });
        for text in
            ["rss(app):stop", "rss()>1GB:stop", "rss(app>1GB:stop", "rss(app)>:stop", "rss(app)>0:stop"]
        {
            let expected = "expected rss(PROGRAM)>SIZE, such as 'rss(app)>1GB:stop'";
            assert_eq!(wrong(text), expected, "{text}");
        }
        let text = "p99.9(app:frame) > 16.5ms:snapshot";
        let trigger: Trigger = text.replace(' ', "").parse().unwrap();
        assert_eq!(trigger.to_string(), text);
        let Condition::Durations(limit) = trigger.condition else { panic!("{trigger}") };
        assert_eq!((limit.function, limit.limit), (Function::Percentile(99.9), 16.5e6));
        assert!(limit.selector.matches("app", "frame") && !limit.selector.matches("app", "frames"));
        for text in ["count(work) > 10:stop", "sum(app:*) > 1s:stop", "max(\"a b\") > 1us:dump-memory"] {
            assert_eq!(text.parse::<Trigger>().unwrap().to_string(), text);
        }
        for text in ["p99(frame)<16ms", "rate(frame)>1", "max(gap(frame))>1s", "mean(counter(queue))>1"] {
            let text = format!("{text}:stop");
            assert!(
                wrong(&text).starts_with("expected a limit that durations exceed, such as 'p99("),
                "{text}"
            );
        }
        let trigger: Trigger = "open(app:frame)>100ms:snapshot".parse().unwrap();
        assert_eq!(trigger.to_string(), "open(app:frame) > 100ms:snapshot");
        let Condition::Open(limit) = trigger.condition else { panic!("{trigger}") };
        assert!(limit.selector.matches("app", "frame") && limit.limit == 1e8);
        for text in [
            "open(app:frame)<1s:stop",
            "open(frame)>1:stop",
            "open(gap(frame))>1s:stop",
            "open():stop",
            "open(a)>0s:stop",
        ] {
            assert!(wrong(text).starts_with("expected a time that no duration may be open for"), "{text}");
        }
        assert!(wrong("max(a)>1s and lost==0:stop").starts_with("expected one limit, such as"));
        assert!(
            wrong("p99(frame)>16:stop").starts_with("line 1, column 14: expected a unit of time: ns, us, ms")
        );
        assert_eq!(wrong("a:go"), "the action is \"go\", expected stop, snapshot or dump-memory");
        assert_eq!(wrong("fifteen_letters:stop"), "the alert's name has 15 bytes, at most 14");
    }
}

//! Texts become assertions.

use super::{
    Assertion, Comparison, Dimension, Function, Kind, Limit, Operator, Selector, Source, Unit, Value,
};
use trace_model::pattern::{Pattern, Piece};

/// How deep parentheses may be nested.
const MAX_DEPTH: usize = 64;
/// How much of a line an error shows on each side of the place, in characters.
const SHOWN_AROUND: usize = 200;
/// How much of what was found an error shows, in characters.
const MAX_FOUND: usize = 20;

/// A text that is no assertion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
// prints: line 1, column 12: expected ")", found "<"
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// What should stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
    /// The whole line.
    pub text: String,
}

impl ParseError {
    /// The line, or of a long one what is around the place, and a caret below the place.
    #[must_use]
    pub fn shown(&self) -> String {
        let place = self.column - 1;
        let first = place.saturating_sub(SHOWN_AROUND);
        let mut rest = self.text.chars().skip(first);
        // The line stays one line.
        let shown = |char: char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char };
        let around: String = rest.by_ref().take(place - first + SHOWN_AROUND).map(shown).collect();
        // Tabs stay, so that the caret stands where it should.
        let before = around.chars().take(place - first);
        let blank: String = before.map(|char| if char == '\t' { '\t' } else { ' ' }).collect();
        let (left, left_blank) = if first > 0 { ("...", "   ") } else { ("", "") };
        let right = if rest.next().is_some() { "..." } else { "" };
        format!("{left}{around}{right}\n{left_blank}{blank}^")
    }
}

impl Assertion {
    /// The assertion in a text.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_line(text, 1)
    }

    /// The assertions in a text, one on each line, with the numbers of their lines. Empty lines, and what
    /// follows a `#`, do not count.
    ///
    /// # Errors
    /// A line is no assertion.
    pub fn parse_all(text: &str) -> Result<Vec<(usize, Self)>, ParseError> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !matches!(line.trim_start().chars().next(), None | Some('#')));
        lines.map(|(number, line)| Ok((number, Self::parse_line(line, number)?))).collect()
    }

    fn parse_line(text: &str, line: usize) -> Result<Self, ParseError> {
        let mut parser = Parser { chars: text.chars().collect(), at: 0, depth: 0 };
        let parsed = parser.either().and_then(|assertion| {
            parser.blank();
            match parser.peek() {
                None | Some('#') => Ok(assertion),
                Some(_) => parser.fail("and, or, or the end"),
            }
        });
        parsed.map_err(|Fail { at, expected, found }| ParseError {
            line,
            column: at + 1,
            expected,
            found,
            text: text.to_owned(),
        })
    }
}

/// Where parsing fails.
struct Fail {
    at: usize,
    expected: String,
    found: String,
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

/// A character of a name, and whether it was in quotes.
type Atom = (char, bool);

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn fail<T>(&self, expected: impl Into<String>) -> Result<T, Fail> {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let is_of_word = |char: &char| char.is_alphanumeric() || "_.%".contains(*char);
        let word = rest.iter().take(MAX_FOUND).take_while(|char| is_of_word(char)).count().max(1);
        let found = match rest.get(..word) {
            None => "the end".to_owned(),
            Some(word) => format!("{:?}", word.iter().collect::<String>()),
        };
        Err(Fail { at: self.at, expected: expected.into(), found })
    }

    /// Whether this text stands here, which is then behind.
    fn eat(&mut self, text: &str) -> bool {
        let is_here =
            text.chars().enumerate().all(|(place, char)| self.chars.get(self.at + place) == Some(&char));
        self.at += if is_here { text.chars().count() } else { 0 };
        is_here
    }

    fn need(&mut self, text: &str) -> Result<(), Fail> {
        self.blank();
        if self.eat(text) { Ok(()) } else { self.fail(format!("{text:?}")) }
    }

    /// A word of letters, digits and full stops.
    fn word(&self) -> String {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        rest.iter().take_while(|char| char.is_ascii_alphanumeric() || **char == '.').collect()
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Assertion, Fail>,
        join: fn(Vec<Assertion>) -> Assertion,
    ) -> Result<Assertion, Fail> {
        let first = part(self)?;
        let mut parts = vec![first];
        loop {
            self.blank();
            if self.word() != word {
                break;
            }
            self.at += word.len();
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { join(parts) })
    }

    fn either(&mut self) -> Result<Assertion, Fail> {
        self.joined("or", Self::all, Assertion::Or)
    }

    fn all(&mut self) -> Result<Assertion, Fail> {
        self.joined("and", Self::one, Assertion::And)
    }

    fn one(&mut self) -> Result<Assertion, Fail> {
        self.blank();
        if self.peek() != Some('(') {
            return self.comparison().map(Assertion::Comparison);
        }
        if self.depth == MAX_DEPTH {
            return self.fail("fewer parentheses");
        }
        self.at += 1;
        self.depth += 1;
        let inner = self.either()?;
        self.depth -= 1;
        self.need(")")?;
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<Comparison, Fail> {
        let value = self.value()?;
        self.blank();
        let Some(operator) = Operator::ALL.into_iter().find(|operator| self.eat(operator.text())) else {
            return self.fail("<, <=, >, >=, == or !=");
        };
        self.blank();
        let limit = self.limit(&value)?;
        Ok(Comparison { value, operator, limit })
    }

    fn value(&mut self) -> Result<Value, Fail> {
        let word = self.word();
        let function = match &*word {
            "errors" => {
                self.at += word.len();
                return Ok(Value::Errors);
            }
            "lost" => {
                self.at += word.len();
                if !self.eat("(") {
                    return Ok(Value::Lost(None));
                }
                self.blank();
                let atoms = self.atoms("the name of a program")?;
                self.need(")")?;
                return Ok(Value::Lost(Some(pattern(&atoms))));
            }
            _ => match Function::NAMED.iter().find(|(named, _)| *named == word) {
                Some((_, function)) => *function,
                None => self.percentile(&word)?,
            },
        };
        self.at += word.len();
        self.need("(")?;
        self.blank();
        let source = self.source()?;
        self.need(")")?;
        Ok(Value::Of(function, source))
    }

    fn percentile(&self, word: &str) -> Result<Function, Fail> {
        let percent =
            word.strip_prefix('p').filter(|rest| rest.starts_with(|char: char| char.is_ascii_digit()));
        match percent.and_then(|rest| rest.parse::<f64>().ok()) {
            Some(percent) if (1.0..=100.0).contains(&percent) => Ok(Function::Percentile(percent)),
            Some(_) => self.fail("a percentile from p1 to p100"),
            None => self.fail("count, sum, min, max, mean, rate, a percentile such as p99, lost or errors"),
        }
    }

    fn source(&mut self) -> Result<Source, Fail> {
        let word = self.word();
        let is_call = ["self", "gap", "counter"].contains(&&*word)
            && self.chars.get(self.at + word.len()) == Some(&'(');
        if !is_call {
            return Ok(Source::Events(self.selector_of_kind()?));
        }
        self.at += word.len() + 1;
        self.blank();
        let source = match &*word {
            "self" => Source::SelfTime(self.selector_of_kind()?),
            "gap" => Source::Gap(self.selector_of_kind()?),
            _ => self.counter()?,
        };
        self.need(")")?;
        Ok(source)
    }

    /// The characters of a name, up to a blank or a parenthesis.
    fn atoms(&mut self, expected: &str) -> Result<Vec<Atom>, Fail> {
        let start = self.at;
        let mut atoms = Vec::new();
        while let Some(char) = self.peek() {
            match char {
                '"' => self.quoted(&mut atoms)?,
                '(' | ')' => break,
                char if char.is_whitespace() => break,
                char => {
                    atoms.push((char, false));
                    self.at += 1;
                }
            }
        }
        if self.at == start { self.fail(expected) } else { Ok(atoms) }
    }

    fn quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Fail> {
        self.at += 1;
        loop {
            let Some(char) = self.peek() else { return self.fail("a closing quote") };
            self.at += 1;
            match char {
                '"' => return Ok(()),
                '\\' => {
                    let Some(char @ ('"' | '\\')) = self.peek() else {
                        return self.fail("\\\" or \\\\");
                    };
                    atoms.push((char, true));
                    self.at += 1;
                }
                char => atoms.push((char, true)),
            }
        }
    }

    /// A selector, or one in parentheses behind a kind.
    fn selector_of_kind(&mut self) -> Result<Selector, Fail> {
        let word = self.word();
        let kind = Kind::ALL.into_iter().find(|kind| kind.text() == word);
        let Some(kind) = kind.filter(|_| self.chars.get(self.at + word.len()) == Some(&'(')) else {
            return self.selector();
        };
        self.at += word.len() + 1;
        self.blank();
        let selector = self.selector()?;
        self.need(")")?;
        Ok(Selector { kind: Some(kind), ..selector })
    }

    fn selector(&mut self) -> Result<Selector, Fail> {
        let start = self.at;
        let atoms = self.atoms("a name")?;
        self.selector_of(&atoms, start)
    }

    /// The last colon that stands alone is between category and name: `::` is part of a name.
    fn selector_of(&mut self, atoms: &[Atom], start: usize) -> Result<Selector, Fail> {
        let is_colon = |place: usize| atoms.get(place) == Some(&(':', false));
        let separates = |place: &usize| {
            is_colon(*place) && !is_colon(place + 1) && !place.checked_sub(1).is_some_and(is_colon)
        };
        let Some(place) = (0..atoms.len()).rfind(separates) else {
            return Ok(Selector { kind: None, category: None, name: pattern(atoms) });
        };
        let (category, name) = (&atoms[..place], &atoms[place + 1..]);
        // What is empty in quotes is no mistake, but then a quote stands there.
        let end = self.at;
        if category.is_empty() && self.chars.get(start) == Some(&':') {
            self.at = start;
            return self.fail("a category before the colon");
        }
        if name.is_empty() && end > 0 && self.chars.get(end - 1) == Some(&':') {
            return self.fail("a name behind the colon");
        }
        Ok(Selector { kind: None, category: Some(pattern(category)), name: pattern(name) })
    }

    /// The last full stop is between the counter's name and that of the value.
    fn counter(&mut self) -> Result<Source, Fail> {
        let start = self.at;
        let atoms = self.atoms("the name of a counter")?;
        let colon = atoms.iter().rposition(|atom| *atom == (':', false)).map_or(0, |place| place + 1);
        let stop = atoms.iter().rposition(|atom| *atom == ('.', false)).filter(|place| *place >= colon);
        let (name, series) = match stop {
            Some(place) => (&atoms[..place], Some(&atoms[place + 1..])),
            None => (&atoms[..], None),
        };
        let selector = self.selector_of(name, start)?;
        Ok(Source::Counter(selector, series.map(pattern)))
    }

    fn limit(&mut self, value: &Value) -> Result<Limit, Fail> {
        let start = self.at;
        self.eat("-");
        let digits = |parser: &Self| {
            let rest = parser.chars.get(parser.at..).unwrap_or_default();
            rest.iter().take_while(|char| char.is_ascii_digit()).count()
        };
        let whole = digits(self);
        self.at += whole;
        if whole > 0 && self.eat(".") {
            self.at += digits(self);
        }
        let text: String = self.chars[start..self.at].iter().collect();
        let Some(number) = text.parse::<f64>().ok().filter(|number| whole > 0 && number.is_finite()) else {
            self.at = start;
            return self.fail("a number");
        };
        if !text.contains('.') && whole > f64::DIGITS as usize {
            self.at = start;
            return self.fail("a whole number of at most 15 digits, because values are compared as doubles");
        }
        self.blank();
        let unit = self.unit();
        let dimension = unit.map(|(_, unit)| unit.factor().0);
        if value.is_time() && dimension != Some(Dimension::Time) {
            return self.fail("a unit of time: ns, us, ms or s");
        }
        if value.is_number() && unit.is_some() {
            return self.fail("no unit: this value is a plain number");
        }
        if !value.is_time() && dimension == Some(Dimension::Time) {
            return self.fail("B, kB, MB, KiB, MiB, % or no unit: the value of a counter is no time");
        }
        self.at += unit.map_or(0, |(length, _)| length);
        Ok(Limit { number, unit: unit.map(|(_, unit)| unit) })
    }

    /// The unit that stands here, and its length.
    fn unit(&self) -> Option<(usize, Unit)> {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let word: String = match rest.first() {
            Some('%') => "%".to_owned(),
            _ => rest.iter().take_while(|char| char.is_alphabetic()).collect(),
        };
        // Two characters look alike.
        let word = word.replace(['µ', 'μ'], "u");
        let unit = Unit::ALL.into_iter().find(|unit| unit.text == word)?;
        Some((word.len(), unit))
    }
}

/// The asterisks that are not in quotes stand for any text.
fn pattern(atoms: &[Atom]) -> Pattern {
    Pattern::new(atoms.iter().map(|(char, is_quoted)| match char {
        '*' if !is_quoted => Piece::Any,
        char => Piece::Text(char.to_string()),
    }))
}

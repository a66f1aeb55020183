//! Parses paths.

use serde_json::Value;

use super::{Condition, Malformed, Operator, Slice, Step};

/// The greatest depth of filters and lists within each other.
const DEPTH_MAX: usize = 8;

/// Parses the steps of a path.
pub(super) fn path(text: &str) -> Result<Vec<Step>, Malformed> {
    nested(text, DEPTH_MAX)
}

fn nested(text: &str, depth: usize) -> Result<Vec<Step>, Malformed> {
    let mut parser = Parser {
        rest: text,
        steps: Vec::new(),
        depth: depth.checked_sub(1).ok_or(Malformed)?,
    };
    while !parser.rest.is_empty() {
        parser.step()?;
    }
    Ok(parser.steps)
}

struct Parser<'t> {
    rest: &'t str,
    steps: Vec<Step>,
    /// The depth that is left.
    depth: usize,
}

impl<'t> Parser<'t> {
    fn step(&mut self) -> Result<(), Malformed> {
        if self.skip("[?(") {
            return self.filter();
        }
        if self.skip("..") {
            return self.descent();
        }
        let first = self.rest.chars().next().ok_or(Malformed)?;
        match first {
            ' ' | '@' | '$' => self.advance(1),
            '[' => self.list()?,
            '.' => {
                self.advance(1);
                self.field();
            }
            '"' | '\'' => self.text(first)?,
            '+' | '-' | '0'..='9' => self.number()?,
            _ => self.word()?,
        }
        Ok(())
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Returns the text up to this byte, and goes on after it.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn descent(&mut self) -> Result<(), Malformed> {
        if self.steps.last() == Some(&Step::Descent) {
            return Err(Malformed);
        }
        self.steps.push(Step::Descent);
        if self.rest.starts_with(is_word) {
            self.field();
        }
        Ok(())
    }

    fn field(&mut self) {
        let mut end = self.rest.len();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            if letter == '\\' {
                letters.next();
            } else if is_terminator(letter) {
                end = at;
                break;
            }
        }
        let step = match self.take(end) {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        };
        self.steps.push(step);
    }

    /// Parses what is between brackets: an index, a slice, a name, or several of them.
    fn list(&mut self) -> Result<(), Malformed> {
        let end = self.rest.find([']', '\n']).ok_or(Malformed)?;
        let text = self.take(end).strip_prefix('[').ok_or(Malformed)?;
        if !self.skip("]") {
            return Err(Malformed);
        }
        if text.contains(',') {
            let paths = text.split(',').map(|one| {
                let one = one.trim_matches(' ');
                nested(&format!("[{one}]"), self.depth)
            });
            self.steps
                .push(Step::Union(paths.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let name = text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''));
        match name.filter(|name| !name.contains('\'')) {
            Some(name) => self.steps.extend(nested(&format!(".{name}"), self.depth)?),
            None => self.steps.push(Step::Slice(slice(text)?)),
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), Malformed> {
        let end = end_of_filter(self.rest).ok_or(Malformed)?;
        let text = self.take(end);
        if !self.skip(")]") {
            return Err(Malformed);
        }
        self.steps.push(Step::Filter(condition(text, self.depth)?));
        Ok(())
    }

    fn text(&mut self, quote: char) -> Result<(), Malformed> {
        self.advance(1);
        let mut text = String::new();
        let mut letters = self.rest.char_indices();
        loop {
            let (at, letter) = letters.next().ok_or(Malformed)?;
            match letter {
                '\n' => return Err(Malformed),
                '\\' => text.push(unescaped(letters.next().ok_or(Malformed)?.1)?),
                letter if letter == quote => {
                    self.advance(at + 1);
                    self.steps.push(Step::Text(text.into()));
                    return Ok(());
                }
                letter => text.push(letter),
            }
        }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        let digits = self.rest.trim_start_matches(['+', '-']);
        let signs = self.rest.len() - digits.len();
        let end = digits.find(|letter: char| letter != '.' && !letter.is_ascii_digit());
        let text = self.take(signs + end.unwrap_or(digits.len()));
        let whole = text.parse::<i64>().map(Value::from);
        let number = whole.or_else(|_| text.parse::<f64>().map(Value::from));
        self.steps
            .push(Step::Literal(number.map_err(|_| Malformed)?));
        Ok(())
    }

    fn word(&mut self) -> Result<(), Malformed> {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let value = match self.take(end) {
            "true" => true,
            "false" => false,
            _ => return Err(Malformed),
        };
        self.steps.push(Step::Literal(value.into()));
        Ok(())
    }
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn is_terminator(letter: char) -> bool {
    " \t\r\n.,[]$@{}".contains(letter)
}

fn unescaped(letter: char) -> Result<char, Malformed> {
    Ok(match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '\\' | '"' | '\'' => letter,
        _ => return Err(Malformed),
    })
}

/// Returns where a filter ends: at a parenthesis that is not between quotes.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '\n' => return None,
            ')' if quote.is_none() => return Some(at),
            '"' | '\'' if quote.is_none() => quote = Some(letter),
            letter if Some(letter) == quote && !is_escaped => quote = None,
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    None
}

fn condition(text: &str, depth: usize) -> Result<Condition, Malformed> {
    let is_operator = |letter| "!<>=".contains(letter);
    let Some(at) = text.find(is_operator) else {
        let path = nested(text, depth)?;
        return Ok(Condition {
            path,
            comparison: None,
        });
    };
    let (left, rest) = text.split_at(at);
    let right = rest.trim_start_matches(is_operator);
    let operator = operator(&rest[..rest.len() - right.len()])?;
    if left.is_empty() || right.is_empty() {
        return Err(Malformed);
    }
    Ok(Condition {
        path: nested(left, depth)?,
        comparison: Some((operator, nested(right, depth)?)),
    })
}

fn operator(text: &str) -> Result<Operator, Malformed> {
    Ok(match text {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return Err(Malformed),
    })
}

fn slice(text: &str) -> Result<Slice, Malformed> {
    if text == "*" {
        return Ok(Slice::default());
    }
    let parts: Vec<_> = text.split(':').map(number).collect::<Result<_, _>>()?;
    Ok(match parts[..] {
        [index] => Slice {
            start: index,
            end: index.unwrap_or_default().checked_add(1),
            step: None,
            is_index: true,
        },
        [start, end] => Slice {
            start,
            end,
            ..Slice::default()
        },
        [start, end, step] => Slice {
            start,
            end,
            step,
            is_index: false,
        },
        _ => return Err(Malformed),
    })
}

fn number(text: &str) -> Result<Option<i64>, Malformed> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| Malformed),
    }
}

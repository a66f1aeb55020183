//! Measures an expression before it is parsed: the parser takes time and memory that grow with nesting.

/// The deepest nesting of brackets.
const MAX_NESTING: usize = 40;
/// The conditions of one expression: each is nested in the one before.
const MAX_CONDITIONS: usize = 40;
/// The tokens of one expression.
const MAX_TOKENS: usize = 10_000;
/// The tokens that may make the tree deeper.
const MAX_STEPS: usize = 2_000;

/// Reads the expression once.
///
/// # Errors
///
/// Returns why it cannot be parsed.
pub(super) fn check(source: &str) -> Result<(), String> {
    let mut scanner = Scanner {
        rest: source,
        ..Scanner::default()
    };
    let mut tokens = 0;
    while !scanner.rest.is_empty() {
        scanner.token()?;
        tokens += 1;
        scanner.rest = scanner.rest.trim_start();
        if tokens > MAX_TOKENS {
            return Err(format!("expression has more than {MAX_TOKENS} tokens"));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Scanner<'s> {
    rest: &'s str,
    nesting: usize,
    conditions: usize,
    steps: usize,
}

impl<'s> Scanner<'s> {
    fn token(&mut self) -> Result<(), String> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = self.rest.find(|letter| !is_name(letter));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if !name.is_empty() {
            self.rest = rest;
            return match rest.starts_with(['"', '\'']) {
                true => self.string(matches!(name, "r" | "R" | "br" | "bR" | "Br" | "BR")),
                false => self.step(usize::from(name == "in")),
            };
        }
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = &self.rest[end..];
            return Ok(());
        }
        match self.rest.chars().next() {
            Some('"' | '\'') => self.string(false),
            Some(letter) => {
                self.rest = &self.rest[letter.len_utf8()..];
                self.symbol(letter)
            }
            None => Ok(()),
        }
    }

    fn symbol(&mut self, letter: char) -> Result<(), String> {
        match letter {
            '(' | '[' | '{' => self.nesting += 1,
            ')' | ']' | '}' => self.nesting = self.nesting.saturating_sub(1),
            // Those of optional selections have no colon.
            '?' if !self.rest.starts_with('.') => self.conditions += 1,
            _ => {}
        }
        if self.nesting > MAX_NESTING {
            return Err(format!(
                "expression recursion limit exceeded: {MAX_NESTING}"
            ));
        }
        if self.conditions > MAX_CONDITIONS {
            return Err(format!(
                "expression has more than {MAX_CONDITIONS} conditional operators"
            ));
        }
        self.step(usize::from(".([{+-*/%=<>!?".contains(letter)))
    }

    fn step(&mut self, count: usize) -> Result<(), String> {
        self.steps += count;
        match self.steps > MAX_STEPS {
            true => Err(format!(
                "expression has more than {MAX_STEPS} operators and selections"
            )),
            false => Ok(()),
        }
    }

    /// Skips a string, which begins with its quote.
    fn string(&mut self, is_raw: bool) -> Result<(), String> {
        let unterminated = || "Syntax error: token recognition error".to_owned();
        let quote = self.rest.get(..1).unwrap_or_default();
        let long = quote.repeat(3);
        let (end, is_long) = match self.rest.starts_with(&long) {
            true => (long.as_str(), true),
            false => (quote, false),
        };
        let mut rest = self.rest.get(end.len()..).unwrap_or_default();
        loop {
            if let Some(after) = rest.strip_prefix(end) {
                self.rest = after;
                return Ok(());
            }
            let mut letters = rest.chars();
            match letters.next().ok_or_else(unterminated)? {
                '\\' if !is_raw => drop(letters.next()),
                '\n' | '\r' if !is_long => return Err(unterminated()),
                _ => {}
            }
            rest = letters.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_in_strings_and_comments_is_not_counted() {
        let brackets = "(".repeat(100);
        for source in [
            format!("'{brackets}'"),
            format!("\"\\\"{brackets}\""),
            format!("r'{brackets}\\' + 'a'"),
            format!("'''{brackets}'\n{brackets}'''"),
            format!("b\"{brackets}\""),
            format!("true // {brackets}"),
            "()".repeat(100),
        ] {
            assert_eq!(check(&source), Ok(()), "{source}");
        }
        for source in [
            brackets.clone(),
            format!("'' {brackets}"),
            format!("r'\\'{brackets}"),
            format!("for'a'{brackets}"),
            format!("'a\\'' + {brackets}"),
            format!("// a\n{brackets}"),
            "'".to_owned(),
            "'a\n'".to_owned(),
            "a ? b : ".repeat(100),
            "a + ".repeat(3_000),
            "`".repeat(20_000),
        ] {
            assert!(check(&source).is_err(), "{source}");
        }
    }
}

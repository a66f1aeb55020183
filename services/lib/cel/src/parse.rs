//! Expressions from their text. The limits are those of the parser's stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use cel::Env;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};

use super::{macros, scan};

/// The longest expression, in characters.
const MAX_LENGTH: usize = 100_000;
/// The deepest tree: the depth of the checker and of an evaluation.
pub(super) const MAX_DEPTH: usize = 200;
/// The errors that are reported of one expression.
const MAX_ERRORS: usize = 10;
/// The longest line that an error shows, in bytes.
const MAX_SNIPPET: usize = 16 << 10;
/// The stack for the parser, in bytes. A level needs some ten kilobytes in a debug build.
const STACK: usize = 128 << 20;

static ENV: LazyLock<Option<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    macros::add(&mut env).ok()?;
    Some(env)
});

/// An expression that could be parsed, with the places of its parts.
pub(super) struct Parsed<'s> {
    pub(super) root: IdedExpr,
    pub(super) source: &'s str,
    /// The levels of its tree.
    pub(super) depth: usize,
    info: SourceInfo,
}

impl Parsed<'_> {
    /// Returns an error at a part of the expression, as the compiler prints it.
    pub(super) fn error(&self, id: u64, text: &str) -> String {
        let start = self.info.offset_for(id).map_or(0, |(start, _)| start);
        located(self.source, start as usize, text)
    }
}

/// Runs a function that parses, on a stack that is large enough.
///
/// # Errors
///
/// Returns an error if there is no thread to be had, or if the parser panicked.
pub(super) fn with_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("rules".into())
            .stack_size(STACK)
            .spawn_scoped(scope, run)
            .map_err(|error| error.to_string())?;
        thread.join().map_err(|_| "the compiler failed".to_owned())
    })
}

/// Parses an expression. Call it from [`with_stack`].
///
/// # Errors
///
/// Returns the errors as the compiler prints them.
pub(super) fn parse(source: &str) -> Result<Parsed<'_>, String> {
    let length = source.chars().take(MAX_LENGTH + 1).count();
    if length > MAX_LENGTH {
        return Err(at_start(&format!(
            "expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}"
        )));
    }
    scan::check(source).map_err(|error| at_start(&error))?;
    let env = ENV.as_ref().ok_or("the environment is incomplete")?;
    // The parser should not panic; if it does, the expression is at fault, not the service.
    let parsed = catch_unwind(AssertUnwindSafe(|| {
        env.parser().parse_with_source_info(source)
    }));
    let parsed = parsed.map_err(|_| at_start("Syntax error: the expression cannot be parsed"))?;
    let (root, info) = parsed.map_err(|errors| {
        let lines: Vec<_> = errors
            .errors
            .iter()
            .take(MAX_ERRORS)
            .map(|error| {
                let (line, column) = error.pos;
                shown(
                    source,
                    line.max(1) as usize,
                    column.max(1) as usize,
                    &error.msg,
                )
            })
            .collect();
        lines.join("\n")
    })?;
    let depth = depth(&root, MAX_DEPTH).ok_or_else(too_deep)?;
    Ok(Parsed {
        root,
        source,
        depth,
        info,
    })
}

/// Returns the error of an expression that is too deep, on its own or with the variables that it refers to.
pub(super) fn too_deep() -> String {
    at_start(&format!("expression recursion limit exceeded: {MAX_DEPTH}"))
}

/// Returns the number of levels of an expression; None if it is deeper than `limit`.
fn depth(node: &IdedExpr, limit: usize) -> Option<usize> {
    let limit = limit.checked_sub(1)?;
    let mut deepest = 0;
    for child in children(node) {
        deepest = deepest.max(depth(child, limit)?);
    }
    Some(deepest + 1)
}

/// Returns whether an expression that compiles reads a field of a variable, as `variable.field` or `variable.?field`.
/// Call it from [`super::on_compiler_stack`].
pub fn selects(source: &str, variable: &str, field: &str) -> bool {
    let is_variable =
        |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name.as_str() == variable);
    let is_field = |node: &IdedExpr| match &node.expr {
        Expr::Select(select) => is_variable(&select.operand) && select.field == field,
        Expr::Call(call) if call.func_name == operators::OPT_SELECT => match call.args.as_slice() {
            [of, name] => is_variable(of) && is_text(name, field),
            _ => false,
        },
        _ => false,
    };
    parse(source).is_ok_and(|parsed| any(&parsed.root, &is_field))
}

fn is_text(node: &IdedExpr, text: &str) -> bool {
    matches!(&node.expr, Expr::Literal(LiteralValue::String(found)) if found.inner() == text)
}

fn any(node: &IdedExpr, is_wanted: &impl Fn(&IdedExpr) -> bool) -> bool {
    is_wanted(node)
        || children(node)
            .into_iter()
            .any(|child| any(child, is_wanted))
}

fn children(node: &IdedExpr) -> Vec<&IdedExpr> {
    match &node.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Comprehension(fold) => vec![
            &fold.iter_range,
            &fold.accu_init,
            &fold.loop_cond,
            &fold.loop_step,
            &fold.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            entries.flatten().collect()
        }
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(literal) => {
            let entries = literal.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            entries.flatten().collect()
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn at_start(text: &str) -> String {
    format!("ERROR: <input>:-1:0: {text}")
}

/// Returns an error with the line of the expression that it is in.
fn located(source: &str, offset: usize, text: &str) -> String {
    let before: Vec<char> = source.chars().take(offset).collect();
    let line = before.iter().filter(|letter| **letter == '\n').count();
    let column = before
        .iter()
        .rev()
        .take_while(|letter| **letter != '\n')
        .count();
    shown(source, line + 1, column + 1, text)
}

fn shown(source: &str, line: usize, column: usize, text: &str) -> String {
    let mut out = format!("ERROR: <input>:{line}:{column}: {text}");
    let snippet = source.lines().nth(line - 1);
    if let Some(snippet) = snippet.filter(|snippet| snippet.len() <= MAX_SNIPPET) {
        let dots = ".".repeat(column.clamp(1, snippet.len() + 1) - 1);
        out.push_str(&format!("\n | {}\n | {dots}^", snippet.replace('\t', " ")));
    }
    out
}

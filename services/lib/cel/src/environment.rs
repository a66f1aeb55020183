//! Expressions that belong to no schema: those of admission policies. They share variables, some of which are computed
//! by expressions themselves, when they are read first.

use std::iter;
use std::sync::LazyLock;

use super::check::{Checked, Checker};
use super::library::authz::{AUTHORIZER, RESOURCE_CHECK};
use super::parse::{self, MAX_DEPTH, too_deep};
use super::patch;
use super::program::Program;
use super::size::Size;
use super::types::{Object, Type};
use crate::node::Node;

/// The object whose fields are the computed variables. They are variables themselves, with a dot in their names.
const VARIABLES: &str = "variables";
static NO_FIELDS: LazyLock<Node> = LazyLock::new(|| Node {
    schema_type: "object".into(),
    ..Node::default()
});

/// The type of a variable whose value is given.
#[derive(Clone, Copy, Debug)]
pub enum Global<'n> {
    /// It is known when the expression is evaluated.
    Any,
    /// An object of this schema.
    Object(&'n Node),
    /// An authorizer.
    Authorizer,
    /// An authorizer's question about a resource.
    ResourceCheck,
}

/// A type that an expression may have to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They have the names of CEL.
pub enum Output {
    Bool,
    String,
    StringOrNull,
    /// A typed object of the type `Object`.
    Object,
    /// A list of `JSONPatch`.
    Patches,
    Any,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    pub(super) source: String,
    pub(super) program: Program,
}

/// The computed variables of an environment, in the order of their declaration. Those that do not compile are errors
/// when they are read.
#[derive(Debug, Default)]
pub struct Variables(pub(super) Vec<Variable>);

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) program: Result<Program, String>,
}

/// The variables that expressions can use while they are compiled.
pub struct Environment<'n> {
    globals: Vec<(&'static str, Type<'n>)>,
    /// The name, the type, and the levels of each computed variable.
    computed: Vec<(String, Type<'n>, usize)>,
    has_patch_types: bool,
}

/// Runs a function that compiles, on a stack that is large enough for any expression.
///
/// # Errors
/// If there is no thread to be had, or if the compiler panicked.
pub fn on_compiler_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, String> {
    parse::with_stack(run)
}

impl<'n> Environment<'n> {
    /// Returns an environment with variables whose values are given, in the order of the values of an evaluation.
    pub fn new(globals: &[(&'static str, Global<'n>)]) -> Self {
        let globals = globals.iter().map(|(name, global)| (*name, global.ty()));
        let variables = (VARIABLES, Global::Object(&NO_FIELDS).ty());
        Self {
            globals: iter::once(variables).chain(globals).collect(),
            computed: Vec::new(),
            has_patch_types: false,
        }
    }

    /// Adds the types and functions of patches: `Object`, `JSONPatch` and `jsonpatch.escapeKey`.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.has_patch_types = true;
        self
    }

    /// Sets the computed variables to those of another environment with as many given ones.
    #[must_use]
    pub fn with_variables_of(mut self, other: &Self) -> Self {
        self.computed.clone_from(&other.computed);
        self
    }

    /// Compiles an expression. Call it from [`on_compiler_stack`].
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn compile(&self, source: &str, output: Output) -> Result<Expression, String> {
        let (program, ty) = self.program(source)?;
        if !output.accepts(&ty) {
            let wanted = output.wanted();
            return Err(format!("must evaluate to {wanted} but got {ty}"));
        }
        let source = source.to_owned();
        Ok(Expression { source, program })
    }

    /// Compiles a variable, which the expressions that are compiled after it can use. Call it from
    /// [`on_compiler_stack`].
    ///
    /// # Errors
    /// What is wrong with its expression.
    pub fn declare(
        &mut self,
        name: &str,
        source: &str,
        variables: &mut Variables,
    ) -> Result<(), String> {
        let compiled = self.program(source);
        let (ty, depth) = match &compiled {
            Ok((program, ty)) => (ty.clone(), program.depth),
            Err(_) => (Type::Dyn, 1),
        };
        self.computed.push((name.to_owned(), ty, depth));
        let program = compiled.map(|(program, _)| program);
        let error = program.as_ref().err().cloned();
        let name = name.to_owned();
        variables.0.push(Variable { name, program });
        error.map_or(Ok(()), Err)
    }

    fn program(&self, source: &str) -> Result<(Program, Type<'n>), String> {
        let failed = |error: String| format!("compilation failed: {error}");
        let parsed = parse::parse(source).map_err(failed)?;
        let mut checker = Checker::default();
        checker.has_patch_types = self.has_patch_types;
        for (name, ty) in &self.globals {
            checker.declare(name, ty.clone(), Size::UNKNOWN);
        }
        for (name, ty, depth) in &self.computed {
            let name = format!("{VARIABLES}.{name}");
            checker.declare_computed(&name, ty.clone(), Size::UNKNOWN, *depth);
        }
        let checked = checker.check(&parsed.root);
        let Checked { expr, ty, cost, .. } =
            checked.map_err(|problem| failed(parsed.error(problem.id, &problem.text)))?;
        let depth = parsed.depth + checker.deepest;
        if depth > MAX_DEPTH {
            return Err(failed(too_deep()));
        }
        let program = Program {
            expr,
            slots: checker.slots,
            uses_old: false,
            cost,
            depth,
        };
        Ok((program, ty))
    }
}

impl<'n> Global<'n> {
    fn ty(self) -> Type<'n> {
        match self {
            Global::Any => Type::Dyn,
            Global::Object(node) => Type::Object(Object {
                node,
                is_resource: false,
            }),
            Global::Authorizer => Type::Opaque(AUTHORIZER),
            Global::ResourceCheck => Type::Opaque(RESOURCE_CHECK),
        }
    }
}

impl Output {
    pub(super) fn accepts(self, ty: &Type<'_>) -> bool {
        match self {
            Output::Any => true,
            Output::Bool => matches!(ty, Type::Bool),
            Output::String => matches!(ty, Type::String),
            Output::StringOrNull => matches!(ty, Type::String | Type::Null),
            Output::Object => patch::is_object(ty),
            Output::Patches => matches!(ty, Type::List(item) if patch::is_json_patch(item)),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Output::Bool => "bool",
            Output::String => "string",
            Output::StringOrNull => "one of [string null_type]",
            Output::Object => patch::OBJECT,
            Output::Patches => "list(JSONPatch)",
            Output::Any => "any",
        }
    }
}

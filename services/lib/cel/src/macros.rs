//! Comprehensions with two variables: of the index and the item of a list, or of the key and the value of a map.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env};

/// The variable of the result.
pub(super) const RESULT: &str = "@result";
/// The function that adds an entry, or the entries of a map, to the result.
pub(super) const INSERT: &str = "@insert";

type Call<'r> = (&'r mut Option<IdedExpr>, &'r mut Vec<IdedExpr>);
type Expansion = Result<Option<IdedExpr>, ParseError>;

/// Adds the macros.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_macro(Macro::receiver("all", 3, |helper, target, args| {
        Builder::new(helper, (target, args)).all()
    }))?;
    env.add_macro(Macro::receiver("exists", 3, |helper, target, args| {
        Builder::new(helper, (target, args)).exists()
    }))?;
    for name in ["exists_one", "existsOne"] {
        env.add_macro(Macro::receiver(name, 3, |helper, target, args| {
            Builder::new(helper, (target, args)).exists_one()
        }))?;
    }
    for count in [3, 4] {
        env.add_macro(Macro::receiver(
            "transformList",
            count,
            |helper, target, args| Builder::new(helper, (target, args)).transform_list(),
        ))?;
        env.add_macro(Macro::receiver(
            "transformMap",
            count,
            |helper, target, args| Builder::new(helper, (target, args)).transform_map(true),
        ))?;
        env.add_macro(Macro::receiver(
            "transformMapEntry",
            count,
            |helper, target, args| Builder::new(helper, (target, args)).transform_map(false),
        ))?;
    }
    Ok(())
}

struct Builder<'r, 'h> {
    helper: &'r mut MacroExprHelper<'h>,
    call: Call<'r>,
}

impl<'r, 'h> Builder<'r, 'h> {
    fn new(helper: &'r mut MacroExprHelper<'h>, call: Call<'r>) -> Self {
        Self { helper, call }
    }

    fn all(mut self) -> Expansion {
        let test = self.argument();
        let init = self.flag(true);
        let accu = self.accu();
        let cond = self.call(operators::NOT_STRICTLY_FALSE, vec![accu]);
        let accu = self.accu();
        let step = self.call(operators::LOGICAL_AND, vec![accu, test]);
        let result = self.accu();
        self.fold(init, cond, step, result)
    }

    fn exists(mut self) -> Expansion {
        let test = self.argument();
        let init = self.flag(false);
        let accu = self.accu();
        let not = self.call(operators::LOGICAL_NOT, vec![accu]);
        let cond = self.call(operators::NOT_STRICTLY_FALSE, vec![not]);
        let accu = self.accu();
        let step = self.call(operators::LOGICAL_OR, vec![accu, test]);
        let result = self.accu();
        self.fold(init, cond, step, result)
    }

    fn exists_one(mut self) -> Expansion {
        let test = self.argument();
        let init = self.int(0);
        let cond = self.flag(true);
        let (accu, one) = (self.accu(), self.int(1));
        let more = self.call(operators::ADD, vec![accu, one]);
        let same = self.accu();
        let step = self.call(operators::CONDITIONAL, vec![test, more, same]);
        let (accu, one) = (self.accu(), self.int(1));
        let result = self.call(operators::EQUALS, vec![accu, one]);
        self.fold(init, cond, step, result)
    }

    fn transform_list(mut self) -> Expansion {
        let item = self.argument();
        let init = self.next(Expr::List(ListExpr::new(Vec::new())));
        let added = self.next(Expr::List(ListExpr::new(vec![item])));
        let accu = self.accu();
        let step = self.call(operators::ADD, vec![accu, added]);
        self.filtered(init, step)
    }

    /// `keyed`: the entries have the keys of the source.
    fn transform_map(mut self, keyed: bool) -> Expansion {
        let entry = self.argument();
        let init = self.next(Expr::Map(MapExpr::default()));
        let mut args = vec![self.accu()];
        if keyed && let Some(key) = self.call.1.first() {
            args.push(key.clone());
        }
        args.push(entry);
        let step = self.call(INSERT, args);
        self.filtered(init, step)
    }

    /// Makes the step depend on the filter, if there is one.
    fn filtered(mut self, init: IdedExpr, step: IdedExpr) -> Expansion {
        let step = match self.call.1.len() {
            3 => {
                let (filter, same) = (self.argument(), self.accu());
                self.call(operators::CONDITIONAL, vec![filter, step, same])
            }
            _ => step,
        };
        let cond = self.flag(true);
        let result = self.accu();
        self.fold(init, cond, step, result)
    }

    fn fold(self, init: IdedExpr, cond: IdedExpr, step: IdedExpr, result: IdedExpr) -> Expansion {
        let (target, args) = self.call;
        let mut names = Vec::new();
        for arg in args.drain(..) {
            match arg.expr {
                Expr::Ident(name) => names.push(name),
                _ => {
                    let detail = "argument must be a simple name";
                    return Err(self.helper.new_error(arg.id, detail));
                }
            }
        }
        let names = <[String; 2]>::try_from(names);
        let (Ok([first, second]), Some(range)) = (names, target.take()) else {
            return Err(self
                .helper
                .new_error(init.id, "argument must be a simple name"));
        };
        if first == second {
            let detail = format!("duplicate variable name: {first}");
            return Err(self.helper.new_error(init.id, detail));
        }
        let fold = ComprehensionExpr {
            iter_range: range,
            iter_var: first,
            iter_var2: Some(second),
            accu_var: RESULT.into(),
            accu_init: init,
            loop_cond: cond,
            loop_step: step,
            result,
        };
        Ok(Some(
            self.helper.next_expr(Expr::Comprehension(Box::new(fold))),
        ))
    }

    /// Takes the last argument.
    fn argument(&mut self) -> IdedExpr {
        self.call.1.pop().unwrap_or_default()
    }

    fn next(&mut self, expr: Expr) -> IdedExpr {
        self.helper.next_expr(expr)
    }

    fn accu(&mut self) -> IdedExpr {
        self.next(Expr::Ident(RESULT.into()))
    }

    fn flag(&mut self, flag: bool) -> IdedExpr {
        self.next(Expr::Literal(LiteralValue::Boolean(flag.into())))
    }

    fn int(&mut self, int: i64) -> IdedExpr {
        self.next(Expr::Literal(LiteralValue::Int(int.into())))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.next(Expr::Call(CallExpr {
            func_name: name.into(),
            target: None,
            args,
        }))
    }
}

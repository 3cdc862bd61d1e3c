//! What an expression speaks of, read from its tree: paths from a variable on.
//!
//! An element of a list is written `[]`. A variable that a loop binds is the element of what the loop goes over.

use super::parts;
use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use std::collections::HashMap;

/// An element of a list, in a path.
pub(crate) const ELEMENT: &str = "[]";

/// All paths, each as long as it goes.
pub(super) fn mentions(expression: &IdedExpr) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(expression, &HashMap::new(), &mut found);
    found
}

/// What is bound to a name by a loop; nothing when it is no path.
type Bound = HashMap<String, Option<Vec<String>>>;

fn collect(expression: &IdedExpr, bound: &Bound, found: &mut Vec<Vec<String>>) {
    if let Some(path) = path(expression, bound) {
        found.extend(path);
        indices(expression, bound, found);
        return;
    }
    match &expression.expr {
        Expr::Comprehension(inner) => {
            collect(&inner.iter_range, bound, found);
            let mut within = bound.clone();
            let element = path(&inner.iter_range, bound).flatten().map(|mut range| {
                range.push(ELEMENT.to_owned());
                range
            });
            within.insert(inner.iter_var.clone(), element);
            within.insert(inner.accu_var.clone(), None);
            within.extend(inner.iter_var2.clone().map(|name| (name, None)));
            for part in [&inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result] {
                collect(part, &within, found);
            }
        }
        _ => parts(expression).into_iter().for_each(|part| collect(part, bound, found)),
    }
}

/// The indices of a path are expressions of their own.
fn indices(expression: &IdedExpr, bound: &Bound, found: &mut Vec<Vec<String>>) {
    match &expression.expr {
        Expr::Select(select) => indices(&select.operand, bound, found),
        Expr::Call(call) => {
            if let [operand, index] = call.args.as_slice() {
                indices(operand, bound, found);
                collect(index, bound, found);
            }
        }
        _ => {}
    }
}

/// The path that an expression spells, if it spells one: `Some(None)` where it begins at a name that a loop binds to
/// something else.
fn path(expression: &IdedExpr, bound: &Bound) -> Option<Option<Vec<String>>> {
    match &expression.expr {
        Expr::Ident(name) => Some(match bound.get(name) {
            Some(path) => path.clone(),
            None => Some(vec![name.clone()]),
        }),
        Expr::Select(select) => Some(path(&select.operand, bound)?.map(|path| longer(path, select.field.clone()))),
        Expr::Call(call)
            if [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT].contains(&call.func_name.as_str()) =>
        {
            let [operand, index] = call.args.as_slice() else { return None };
            let part = match &index.expr {
                Expr::Literal(LiteralValue::String(text)) => text.inner().to_owned(),
                _ => ELEMENT.to_owned(),
            };
            Some(path(operand, bound)?.map(|path| longer(path, part)))
        }
        _ => None,
    }
}

fn longer(mut path: Vec<String>, part: String) -> Vec<String> {
    path.push(part);
    path
}

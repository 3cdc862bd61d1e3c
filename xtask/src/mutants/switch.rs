//! All mutants of a file in it at once, each behind a switch of its own.
//!
//! Only one is ever on, so what stands in a mutated branch is the code as it is, and a file grows in step with its
//! mutants. What cannot be switched while a program runs is left out: constants, `const fn`, fields, and the value of a
//! function whose type is opaque.

use proc_macro2::{LineColumn, Literal, Span, TokenStream, TokenTree};
use quote::quote;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};

/// A mutant, as `cargo mutants --list --json` tells of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Mutant {
    pub(super) file: String,
    pub(super) genre: String,
    pub(super) name: String,
    pub(super) replacement: String,
    pub(super) span: Range,
}

impl Mutant {
    /// Its name on one line.
    pub(super) fn line(&self) -> String {
        self.name.replace('\n', " ")
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Range {
    start: Place,
}

/// A place in a file; lines and columns begin with one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
struct Place {
    line: usize,
    column: usize,
}

impl From<LineColumn> for Place {
    fn from(at: LineColumn) -> Self {
        Self { line: at.line, column: at.column + 1 }
    }
}

/// Puts mutants into a file.
pub(super) struct Switcher<'m> {
    wanted: HashMap<(&'m str, Place), Vec<(usize, &'m Mutant)>>,
    pub(super) placed: HashSet<usize>,
}

impl<'m> Switcher<'m> {
    pub(super) fn new(mutants: impl Iterator<Item = (usize, &'m Mutant)>) -> Self {
        let mut wanted: HashMap<_, Vec<_>> = HashMap::new();
        for (id, mutant) in mutants {
            wanted.entry((mutant.genre.as_str(), mutant.span.start)).or_default().push((id, mutant));
        }
        Self { wanted, placed: HashSet::new() }
    }

    fn at(&self, genre: &str, span: Span) -> Vec<(usize, &'m Mutant)> {
        self.wanted.get(&(genre, span.start().into())).cloned().unwrap_or_default()
    }

    /// The condition under which a mutant is on, which is placed thereby.
    fn switch(&mut self, id: usize) -> TokenStream {
        self.placed.insert(id);
        let number = Literal::usize_unsuffixed(id);
        quote!(crate::__m::m(#number))
    }

    /// Visits the body of a function, then puts the early returns before it.
    fn enter(&mut self, sig: &syn::Signature, block: &mut syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let found = self.at("FnValue", first.span());
        visit_mut::visit_block_mut(self, block);
        // An early return cannot be of another type than the one the body gives an opaque name to.
        if opaque(&sig.output) {
            return;
        }
        for (id, mutant) in found {
            let Ok(value) = mutant.replacement.parse::<TokenStream>() else { continue };
            let on = self.switch(id);
            let early: syn::Stmt = syn::parse_quote! { if #on { return #value; } };
            block.stmts.insert(0, early);
        }
    }
}

fn opaque(output: &syn::ReturnType) -> bool {
    quote!(#output).into_iter().any(|tree| matches!(&tree, TokenTree::Ident(ident) if ident == "impl"))
}

fn holds_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => holds_let(&binary.left) || holds_let(&binary.right),
        _ => false,
    }
}

impl VisitMut for Switcher<'_> {
    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_trait_item_const_mut(&mut self, _: &mut syn::TraitItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_variant_mut(&mut self, _: &mut syn::Variant) {}

    fn visit_item_fn_mut(&mut self, node: &mut syn::ItemFn) {
        if node.sig.constness.is_none() {
            self.enter(&node.sig, &mut node.block);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, node: &mut syn::ImplItemFn) {
        if node.sig.constness.is_none() {
            self.enter(&node.sig, &mut node.block);
        }
    }

    fn visit_trait_item_fn_mut(&mut self, node: &mut syn::TraitItemFn) {
        if let Some(block) = &mut node.default {
            self.enter(&node.sig, block);
        }
    }

    fn visit_arm_mut(&mut self, node: &mut syn::Arm) {
        let arm = self.at("MatchArm", node.pat.span());
        let guards = node.guard.as_ref().map(|(_, guard)| self.at("MatchArmGuard", guard.span())).unwrap_or_default();
        visit_mut::visit_arm_mut(self, node);
        let mut guard = node.guard.as_ref().map(|(_, guard)| quote!((#guard)));
        for (id, mutant) in guards {
            let on = self.switch(id);
            let inner = guard.clone().unwrap_or_default();
            guard = Some(if mutant.replacement == "true" { quote!((#on || #inner)) } else { quote!((!#on && #inner)) });
        }
        for (id, _) in arm {
            let on = self.switch(id);
            guard = Some(match guard {
                Some(inner) => quote!((!#on && #inner)),
                None => quote!((!#on)),
            });
        }
        if let Some(guard) = guard {
            node.guard = Some((syn::Token![if](Span::call_site()), Box::new(syn::Expr::Verbatim(guard))));
        }
    }

    fn visit_expr_mut(&mut self, node: &mut syn::Expr) {
        match node {
            syn::Expr::Binary(binary) => {
                let found = self.at("BinaryOperator", binary.op.span());
                let (left, right) = (binary.left.clone(), binary.right.clone());
                let chained = holds_let(&binary.left) || holds_let(&binary.right);
                visit_mut::visit_expr_binary_mut(self, binary);
                if found.is_empty() || chained {
                    return;
                }
                let mut arms = TokenStream::new();
                for (id, mutant) in found {
                    let Ok(op) = mutant.replacement.parse::<TokenStream>() else { continue };
                    let on = self.switch(id);
                    arms.extend(quote!(if #on { #left #op #right } else));
                }
                *node = syn::Expr::Verbatim(quote!((#arms { #binary })));
            }
            syn::Expr::Unary(unary) => {
                let found = self.at("UnaryOperator", unary.op.span());
                let inner = unary.expr.clone();
                visit_mut::visit_expr_unary_mut(self, unary);
                if let Some((id, _)) = found.first() {
                    let on = self.switch(*id);
                    *node = syn::Expr::Verbatim(quote!((if #on { #inner } else { #unary })));
                }
            }
            other => visit_mut::visit_expr_mut(self, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;

    fn mutant(genre: &str, replacement: &str, line: usize, column: usize) -> Mutant {
        let (file, name) = (String::new(), String::new());
        let span = Range { start: Place { line, column } };
        Mutant { file, genre: genre.into(), name, replacement: replacement.into(), span }
    }

    #[test]
    fn every_kind_of_mutant_stands_behind_its_switch() {
        let source = "fn f(a: u8, b: u8) -> bool {\n    match a {\n        1 if b > 2 => !true,\n        _ => a == b,\n    }\n}\n";
        let mutants = [
            mutant("FnValue", "false", 2, 5),
            mutant("MatchArm", "", 3, 9),
            mutant("MatchArmGuard", "true", 3, 14),
            mutant("BinaryOperator", ">=", 3, 16),
            mutant("UnaryOperator", "", 3, 23),
            mutant("BinaryOperator", "!=", 4, 16),
            mutant("BinaryOperator", "!=", 9, 9),
        ];
        let mut tree = syn::parse_file(source).unwrap();
        let mut switcher = Switcher::new(mutants.iter().enumerate().map(|(at, mutant)| (at + 1, mutant)));
        switcher.visit_file_mut(&mut tree);
        assert_eq!(switcher.placed, HashSet::from([1, 2, 3, 4, 5, 6]));
        let text = tree.to_token_stream().to_string().replace("crate :: __m :: m", "m").replace(' ', "");
        for part in [
            "ifm(1){returnfalse;}",
            "(!m(2)&&(m(3)||((ifm(4){b>=2}else{b>2}))))",
            "(ifm(5){true}else{!true})",
            "(ifm(6){a!=b}else{a==b})",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn what_is_constant_or_opaque_is_left_out() {
        let source = "const A: u8 = 1 + 2;\nconst fn f() -> u8 { 1 + 2 }\nfn g() -> impl Sized { 1 }\n";
        let mutants =
            [mutant("BinaryOperator", "-", 1, 17), mutant("BinaryOperator", "-", 2, 24), mutant("FnValue", "2", 3, 24)];
        let mut tree = syn::parse_file(source).unwrap();
        let mut switcher = Switcher::new(mutants.iter().enumerate());
        switcher.visit_file_mut(&mut tree);
        assert!(switcher.placed.is_empty());
    }
}

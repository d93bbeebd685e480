//! The arguments of a call: `args(url, len = body.len(), debug(state))`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprPath, FnArg, GenericArgument, LitStr, Pat, PathArguments, PathSegment, Result,
    Signature, Type,
};

/// An argument's name in the trace and its value.
#[derive(Clone)]
pub(crate) struct Argument {
    /// The name.
    pub(crate) key: LitStr,
    value: Value,
}

#[derive(Clone)]
enum Value {
    /// A variable, most often a parameter.
    Variable(Ident),
    /// `debug(…)` or `display(…)`: the name of the function, and the value without `&`.
    Rendered(Ident, Expr),
    /// Everything else.
    Expression(Expr),
}

impl Argument {
    /// The value for `duration!`, which keeps it until the function ends.
    pub(crate) fn kept(&self, path: &TokenStream, signature: &Signature) -> TokenStream {
        match &self.value {
            Value::Variable(name)
                if is_one_of(signature, name, &OWNERS) || is_option_of(signature, name, &OWNERS) =>
            {
                borrowed(quote!(#name), name.span())
            }
            Value::Variable(name) => quote!(#name),
            Value::Rendered(function, value) => rendered(path, function, value),
            Value::Expression(value) => quote!(#value),
        }
    }

    /// The value for a future, and whether it should be evaluated only if it is recorded. It is kept beside
    /// the body, which owns the parameters: it may not borrow from what they own.
    pub(crate) fn kept_in_future(&self, path: &TokenStream, signature: &Signature) -> (TokenStream, bool) {
        match &self.value {
            Value::Variable(name) if is_one_of(signature, name, &TEXTS) => {
                let value = borrowed(quote!(#name), name.span());
                (quote!(#path::display(#value)), true)
            }
            Value::Variable(name) if is_option_of(signature, name, &TEXTS) => {
                let value = borrowed(quote!(#name), name.span());
                let some = quote!(::core::option::Option);
                (quote!(#some::map(#some::as_ref(#value), |text| #path::display(text))), true)
            }
            Value::Variable(name) => (quote!(#name), false),
            Value::Rendered(function, value) => (rendered(path, function, value), true),
            Value::Expression(value) => (quote!(#value), true),
        }
    }
}

fn rendered(path: &TokenStream, function: &Ident, value: &Expr) -> TokenStream {
    let is_tight = matches!(
        value,
        Expr::Path(_)
            | Expr::Field(_)
            | Expr::MethodCall(_)
            | Expr::Call(_)
            | Expr::Index(_)
            | Expr::Lit(_)
            | Expr::Macro(_)
            | Expr::Paren(_)
            | Expr::Reference(_)
            | Expr::Unary(_)
    );
    let span = value.span();
    let value = if is_tight { quote!(#value) } else { quote!((#value)) };
    let value = borrowed(value, span);
    quote!(#path::#function(#value))
}

/// With `&` in front of it, in the same place, so that messages point at the value.
fn borrowed(value: TokenStream, at: Span) -> TokenStream {
    let and = syn::Token![&](at);
    quote!(#and #value)
}

/// Types that own text.
const TEXTS: [&str; 2] = ["String", "Cow"];
/// Types that own something that is enough to borrow.
const OWNERS: [&str; 4] = ["String", "Cow", "PathBuf", "Vec"];

/// The last part of the path that is a parameter's type.
fn type_of<'a>(signature: &'a Signature, name: &Ident) -> Option<&'a PathSegment> {
    signature.inputs.iter().find_map(|parameter| {
        let FnArg::Typed(parameter) = parameter else { return None };
        match &*parameter.pat {
            Pat::Ident(pattern) if pattern.ident == *name => last_part(&parameter.ty),
            _ => None,
        }
    })
}

fn last_part(of: &Type) -> Option<&PathSegment> {
    if let Type::Path(path) = of { path.path.segments.last() } else { None }
}

/// Whether a parameter has one of these types.
fn is_one_of(signature: &Signature, name: &Ident, types: &[&str]) -> bool {
    type_of(signature, name).is_some_and(|last| types.iter().any(|name| last.ident == name))
}

/// Whether a parameter is an option of one of these types.
fn is_option_of(signature: &Signature, name: &Ident, types: &[&str]) -> bool {
    let Some(option) = type_of(signature, name).filter(|last| last.ident == "Option") else { return false };
    let PathArguments::AngleBracketed(arguments) = &option.arguments else { return false };
    let Some(GenericArgument::Type(inner)) = arguments.args.first() else { return false };
    last_part(inner).is_some_and(|last| types.iter().any(|name| last.ident == name))
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let expression: Expr = input.parse()?;
        let (key, value) = match expression {
            Expr::Assign(assignment) => {
                let message = "the name of an argument has to be one word, as in `size = self.size()`";
                let key = variable(&assignment.left);
                let key = key.ok_or_else(|| Error::new(assignment.left.span(), message))?;
                (key, Value::of(*assignment.right))
            }
            other => {
                let value = Value::of(other);
                let key = value.own_name();
                let message = "this argument needs a name, as in `size = self.size()`";
                (key.ok_or_else(|| Error::new(value.span(), message))?, value)
            }
        };
        Ok(Self { key: LitStr::new(&key.unraw().to_string(), key.span()), value })
    }
}

impl Value {
    fn of(expression: Expr) -> Self {
        if let Some(name) = variable(&expression) {
            return Self::Variable(name);
        }
        match &expression {
            Expr::Call(call) if call.args.len() == 1 => match variable(&call.func) {
                Some(function) if function == "debug" || function == "display" => {
                    Self::Rendered(function, call.args[0].clone())
                }
                _ => Self::Expression(expression),
            },
            _ => Self::Expression(expression),
        }
    }

    /// The variable that it shows.
    fn own_name(&self) -> Option<Ident> {
        match self {
            Self::Variable(name) => Some(name.clone()),
            Self::Rendered(_, Expr::Reference(reference)) => variable(&reference.expr),
            Self::Rendered(_, value) => variable(value),
            Self::Expression(_) => None,
        }
    }

    fn span(&self) -> Span {
        match self {
            Self::Variable(name) => name.span(),
            Self::Rendered(_, value) | Self::Expression(value) => value.span(),
        }
    }
}

/// The word that an expression is.
fn variable(expression: &Expr) -> Option<Ident> {
    match expression {
        Expr::Path(ExprPath { attrs, qself: None, path }) if attrs.is_empty() => path.get_ident().cloned(),
        _ => None,
    }
}

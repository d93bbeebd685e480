//! The options of the attribute: `#[trace(category = "net", name = "fetch", args(url), crate = path)]`.

use crate::arguments::Argument;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Lit, Meta, Path, Result, Token, parenthesized, token};

/// What the options are, for messages.
const KNOWN: &str = "it takes `category`, `name`, `args`, `crate` and `skip`";

/// Arguments of an event at most.
const MAX_ARGUMENTS: usize = 15;

/// What stands between the parentheses. Each option at most once.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// Of the events; the package's name without it.
    pub(crate) category: Option<Expr>,
    /// Of the events; the function's name without it.
    pub(crate) name: Option<Expr>,
    /// Where `args` stands, and its arguments.
    pub(crate) arguments: Option<(Span, Vec<Argument>)>,
    /// Where the macros are; `::trace_provider` without it.
    pub(crate) path: Option<Path>,
    /// Where `skip` stands.
    pub(crate) skip: Option<Span>,
}

impl Options {
    /// Of an attribute inside of the item that is expanded.
    pub(crate) fn of_attribute(attribute: &Attribute) -> Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(Self::default()),
            Meta::List(_) => attribute.parse_args(),
            Meta::NameValue(meta) => {
                Err(Error::new(meta.eq_token.span, "write the options of `#[trace]` in parentheses"))
            }
        }
    }

    /// The same with what these options do not say taken from those of the block around.
    pub(crate) fn within(mut self, outer: &Self) -> Self {
        self.category = self.category.or_else(|| outer.category.clone());
        self.path = self.path.or_else(|| outer.path.clone());
        self
    }

    /// The path in front of the macros' names.
    pub(crate) fn path(&self) -> TokenStream {
        self.path.as_ref().map_or_else(|| quote!(::trace_provider), |path| quote!(#path))
    }

    /// The events' category.
    pub(crate) fn category(&self) -> TokenStream {
        let named = self.category.as_ref().map(|category| quote!(#category));
        named.unwrap_or_else(|| quote!(::core::env!("CARGO_PKG_NAME")))
    }

    fn set(&mut self, word: &Ident, input: ParseStream<'_>) -> Result<()> {
        let is_twice = if word == "category" {
            self.category.replace(text(word, input)?).is_some()
        } else if word == "name" {
            self.name.replace(text(word, input)?).is_some()
        } else if word == "args" {
            self.arguments.replace((word.span(), arguments(word, input)?)).is_some()
        } else if word == "crate" {
            self.path.replace(path(word, input)?).is_some()
        } else if word == "skip" {
            self.skip.replace(word.span()).is_some()
        } else {
            return Err(Error::new(word.span(), format!("`#[trace]` has no option `{word}`: {KNOWN}")));
        };
        if is_twice {
            return Err(Error::new(word.span(), format!("the option `{word}` is there twice")));
        }
        Ok(())
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        use syn::ext::IdentExt;

        let mut options = Self::default();
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                return Err(input.error(format!("this is no option of `#[trace]`: {KNOWN}")));
            }
            let word = Ident::parse_any(input)?;
            options.set(&word, input)?;
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                return Err(input.error(format!("a comma has to stand behind the option `{word}`")));
            }
        }
        match options.skip {
            Some(skip) if options.has_others() => Err(Error::new(skip, "`skip` excludes all other options")),
            _ => Ok(options),
        }
    }
}

impl Options {
    const fn has_others(&self) -> bool {
        self.category.is_some() || self.name.is_some() || self.arguments.is_some() || self.path.is_some()
    }
}

/// `= "text"`, or an expression that the compiler can evaluate.
fn text(word: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let missing = || Error::new(word.span(), format!("`{word}` needs a text, as in `{word} = \"net\"`"));
    input.parse::<Token![=]>().map_err(|_| missing())?;
    match input.parse().map_err(|_| missing())? {
        Expr::Lit(literal) if !matches!(literal.lit, Lit::Str(_)) => {
            Err(Error::new(literal.span(), format!("`{word}` needs a text, as in `{word} = \"net\"`")))
        }
        text => Ok(text),
    }
}

/// `= my::path`.
fn path(word: &Ident, input: ParseStream<'_>) -> Result<Path> {
    let missing = |_| Error::new(word.span(), "`crate` needs a path, as in `crate = my::trace_provider`");
    input.parse::<Token![=]>().map_err(missing)?;
    Path::parse_mod_style(input).map_err(missing)
}

/// `(url, len = body.len(), debug(state))`.
fn arguments(word: &Ident, input: ParseStream<'_>) -> Result<Vec<Argument>> {
    if !input.peek(token::Paren) {
        return Err(Error::new(
            word.span(),
            "`args` needs parentheses, as in `args(url, size = body.len())`",
        ));
    }
    let list;
    parenthesized!(list in input);
    let mut arguments: Vec<Argument> = Vec::new();
    for argument in list.parse_terminated(Argument::parse, Token![,])? {
        let key = argument.key.value();
        if arguments.iter().any(|before| before.key.value() == key) {
            return Err(Error::new(argument.key.span(), format!("the argument `{key}` is there twice")));
        }
        if arguments.len() == MAX_ARGUMENTS {
            let message = format!("an event has at most {MAX_ARGUMENTS} arguments");
            return Err(Error::new(argument.key.span(), message));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

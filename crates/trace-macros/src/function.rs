//! A function whose calls are recorded.

use crate::options::Options;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Block, Error, Expr, GenericArgument, LitStr, PathArguments, ReturnType, Signature, Stmt, Type,
};

/// Why a function cannot be recorded.
pub(crate) fn obstacle(attributes: &[Attribute], signature: &Signature) -> Option<Error> {
    if let Some(constness) = &signature.constness {
        let message = "`#[trace]` cannot record a `const fn`, which the compiler may evaluate";
        return Some(Error::new(constness.span, message));
    }
    let is_naked = |attribute: &&Attribute| {
        let text = attribute.meta.path().segments.last().map(|last| last.ident.to_string());
        let is_wrapped = text.as_deref() == Some("unsafe")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("naked"));
        is_wrapped || text.as_deref() == Some("naked")
    };
    attributes.iter().find(is_naked).map(|attribute| {
        Error::new(attribute.span(), "`#[trace]` cannot record a naked function, which has no body in Rust")
    })
}

/// Makes the function record its calls. `owner` is the type that it belongs to, if that is known.
pub(crate) fn instrument(signature: &Signature, body: &mut Block, options: &Options, owner: Option<&str>) {
    let own_name = signature.ident.unraw().to_string();
    let own_name = owner.map_or_else(|| own_name.clone(), |owner| format!("{owner}::{own_name}"));
    let own_name = LitStr::new(&own_name, signature.ident.span());
    let name = options.name.as_ref().map_or_else(|| quote!(#own_name), |name| quote!(#name));
    // Items come first in the body, where clippy wants them; values can name them all the same.
    let items = body.stmts.iter().take_while(|statement| matches!(statement, Stmt::Item(_))).count();
    let statements = body.stmts.split_off(items);
    let recording = if signature.asyncness.is_some() {
        let at = body.brace_token.span.join();
        of_future(signature, (&statements, at), options, &name)
    } else {
        let duration = duration(signature, options, &name);
        quote!(#duration #(#statements)*)
    };
    body.stmts.push(Stmt::Expr(Expr::Verbatim(recording), None));
}

/// The statement that records the rest of the body.
fn duration(signature: &Signature, options: &Options, name: &TokenStream) -> TokenStream {
    let (path, category) = (options.path(), options.category());
    let arguments = options.arguments.iter().flat_map(|(_, arguments)| arguments);
    let arguments = arguments.map(|argument| {
        let (key, value) = (&argument.key, argument.kept(&path, signature));
        quote!(#key => #value)
    });
    quote!(#path::duration!(#category, #name #(, #arguments)*);)
}

/// The body of an `async fn`, which stands at a place of the program, as a future that is recorded from its
/// first poll to its end.
fn of_future(
    signature: &Signature,
    (statements, at): (&[Stmt], Span),
    options: &Options,
    name: &TokenStream,
) -> TokenStream {
    let (path, category) = (options.path(), options.category());
    // Names that the program's own code neither sees nor hides.
    let own = Span::mixed_site();
    let is_recorded = quote_spanned!(own=> is_recorded);
    let mut has_conditional = false;
    let arguments = options.arguments.iter().flat_map(|(_, arguments)| arguments);
    let arguments: Vec<TokenStream> = arguments
        .map(|argument| {
            let (value, is_conditional) = argument.kept_in_future(&path, signature);
            has_conditional |= is_conditional;
            let key = &argument.key;
            if is_conditional {
                quote!(#key => if #is_recorded {
                    ::core::option::Option::Some(#value)
                } else {
                    ::core::option::Option::None
                })
            } else {
                quote!(#key => #value)
            }
        })
        .collect();
    let condition = has_conditional.then(|| quote!(let #is_recorded = #path::category_enabled!(#category);));
    // A statement of its own: what the values borrow for a moment is not held while the body waits.
    let described = quote_spanned!(own=> described);
    let described_as = quote!(
        #condition
        let #described = #path::trace_future_args!(#category, #name #(, #arguments)*);
    );
    match &signature.output {
        ReturnType::Type(_, output) if matches!(**output, Type::Never(_)) => quote!(
            #described_as
            match #path::TraceFutureExt::trace(async move {
                #[allow(unreachable_code)]
                let never: ::core::convert::Infallible = { #(#statements)* };
                #[allow(unreachable_code)]
                never
            }, #described).await {}
        ),
        output => {
            let output = returned_type(output);
            // Where the body is, so that messages about its end point there.
            let mut block = Group::new(Delimiter::Brace, quote!(#output #(#statements)*));
            block.set_span(at);
            quote!(
                #described_as
                #path::TraceFutureExt::trace(async move #block, #described).await
            )
        }
    }
}

/// A statement that is never executed and says what the future's body returns, which the compiler knows of
/// an `async fn` but not of an `async` block: without it, `?` and what is returned could not be converted.
fn returned_type(output: &ReturnType) -> Option<TokenStream> {
    let (output, span) = match output {
        ReturnType::Default => (quote!(()), Span::mixed_site()),
        ReturnType::Type(_, output) => {
            let mut output = (**output).clone();
            infer_opaque(&mut output);
            let is_opaque = has_word(quote!(#output), "impl");
            let span = Span::mixed_site().located_at(output.span());
            (if is_opaque { return None } else { quote!(#output) }, span)
        }
    };
    Some(quote_spanned!(span=>
        #[allow(
            unknown_lints,
            unreachable_code,
            clippy::diverging_sub_expression,
            clippy::empty_loop,
            clippy::let_unit_value,
            clippy::let_with_type_underscore,
            clippy::needless_return,
            clippy::type_complexity,
            clippy::unreachable
        )]
        if false {
            let returned: #output = loop {};
            return returned;
        }
    ))
}

/// Leaves each `impl Trait` of a type to the compiler.
fn infer_opaque(found: &mut Type) {
    match found {
        Type::ImplTrait(opaque) => {
            let underscore = syn::Token![_](opaque.span());
            *found = Type::Infer(syn::TypeInfer { attrs: Vec::new(), underscore_token: underscore });
        }
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                    for argument in &mut arguments.args {
                        if let GenericArgument::Type(argument) = argument {
                            infer_opaque(argument);
                        }
                    }
                }
            }
        }
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_opaque),
        Type::Reference(reference) => infer_opaque(&mut reference.elem),
        Type::Array(array) => infer_opaque(&mut array.elem),
        Type::Paren(inner) => infer_opaque(&mut inner.elem),
        Type::Group(inner) => infer_opaque(&mut inner.elem),
        _ => {}
    }
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has_word(group.stream(), word),
        _ => false,
    })
}

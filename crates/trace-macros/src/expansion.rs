//! From the attribute and its item to the item that records.

use crate::container::{Errors, instrument};
use crate::options::Options;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Item;

/// The item, and the errors behind it: what is wrong with the attribute hides nothing else.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut parsed: Item = match syn::parse2(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    let mut errors = Errors::default();
    let options: Options = syn::parse2(options).unwrap_or_else(|error| {
        errors.add(error);
        Options::default()
    });
    instrument(&mut parsed, &options, &mut errors);
    let errors = errors.into_inner().map(|errors| errors.into_compile_error());
    let item = parsed.into_token_stream();
    quote!(#item #errors)
}

#[cfg(test)]
mod tests;

//! Blocks whose functions are all recorded: `impl`, traits, modules.

use crate::function;
use crate::options::Options;
use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Attribute, Block, Error, ImplItem, Item, ItemFn, ItemImpl, ItemMod, ItemTrait, Signature, TraitItem, Type,
};

/// What may have the attribute, for messages.
const PLACES: &str =
    "`#[trace]` can stand on functions, `impl` blocks, traits and modules with a body, `mod name { … }`";

/// The errors of an item so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// One more.
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    /// All of them.
    pub(crate) fn into_inner(self) -> Option<Error> {
        self.0
    }

    fn add_if(&mut self, error: Option<Error>) {
        error.into_iter().for_each(|error| self.add(error));
    }
}

/// Makes what has the attribute record its calls.
pub(crate) fn instrument(item: &mut Item, options: &Options, errors: &mut Errors) {
    if let Some(skip) = options.skip {
        let message = "`skip` is for functions in a block that has the attribute `#[trace]`";
        errors.add(Error::new(skip, message));
        return;
    }
    match item {
        Item::Fn(ItemFn { attrs, sig, block, .. }) => {
            for more in take_own(attrs) {
                let message = "a function has the attribute `#[trace]` once";
                errors.add(Error::new_spanned(more, message));
            }
            match function::obstacle(attrs, sig) {
                Some(obstacle) => errors.add(obstacle),
                None => function::instrument(sig, block, options, None),
            }
        }
        Item::Impl(_) | Item::Trait(_) => of_block(item, options, errors),
        Item::Mod(module) if module.content.is_some() => of_block(item, options, errors),
        Item::Mod(module) => {
            let message = "the text of this module is in another file: use `#[trace]` on what stands there";
            errors.add(Error::new_spanned(&module.ident, message));
        }
        Item::Verbatim(tokens) if is_declaration(tokens) => {
            let message = "this function has no body: use `#[trace]` on the functions that implement it";
            errors.add(Error::new(Span::call_site(), message));
        }
        _ => errors.add(Error::new(Span::call_site(), PLACES)),
    }
}

/// A function without a body.
fn is_declaration(tokens: &proc_macro2::TokenStream) -> bool {
    syn::parse2::<syn::TraitItemFn>(tokens.clone()).is_ok_and(|function| function.default.is_none())
}

/// An item with functions, which has no options of single functions.
fn of_block(item: &mut Item, options: &Options, errors: &mut Errors) {
    if let Some(name) = &options.name {
        errors.add(Error::new_spanned(name, "a name belongs to a single function, not to a block of them"));
    }
    if let Some((span, _)) = &options.arguments {
        errors.add(Error::new(*span, "`args` belong to a single function, not to a block of them"));
    }
    of_container(item, options, errors);
}

fn of_container(item: &mut Item, options: &Options, errors: &mut Errors) {
    match item {
        Item::Impl(ItemImpl { self_ty, items, .. }) => {
            let owner = type_name(self_ty);
            for item in items {
                if let ImplItem::Fn(item) = item {
                    let function = Inner { attributes: &mut item.attrs, signature: &item.sig };
                    function.instrument(&mut item.block, options, Some(&owner), errors);
                }
            }
        }
        Item::Trait(ItemTrait { ident, items, .. }) => {
            let owner = ident.to_string();
            for item in items {
                let TraitItem::Fn(item) = item else { continue };
                if let Some(body) = &mut item.default {
                    let function = Inner { attributes: &mut item.attrs, signature: &item.sig };
                    function.instrument(body, options, Some(&owner), errors);
                }
            }
        }
        Item::Mod(ItemMod { content: Some((_, items)), .. }) => {
            for item in items {
                of_module_item(item, options, errors);
            }
        }
        _ => {}
    }
}

/// A function of a module, or a block inside of it.
fn of_module_item(item: &mut Item, options: &Options, errors: &mut Errors) {
    let attributes = match item {
        Item::Fn(item) => {
            let function = Inner { attributes: &mut item.attrs, signature: &item.sig };
            function.instrument(&mut item.block, options, None, errors);
            return;
        }
        Item::Impl(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Mod(item) if item.content.is_some() => &mut item.attrs,
        _ => return,
    };
    if let Some(own) = own_options(attributes, errors).filter(|own| own.skip.is_none()) {
        of_block(item, &own.within(options), errors);
    }
}

/// A function inside of a block that has the attribute.
struct Inner<'a> {
    attributes: &'a mut Vec<Attribute>,
    signature: &'a Signature,
}

impl Inner<'_> {
    fn instrument(self, body: &mut Block, options: &Options, owner: Option<&str>, errors: &mut Errors) {
        let is_asked_for = self.attributes.iter().any(is_own);
        let Some(own) = own_options(self.attributes, errors).filter(|own| own.skip.is_none()) else {
            return;
        };
        match function::obstacle(self.attributes, self.signature) {
            Some(obstacle) => errors.add_if(is_asked_for.then_some(obstacle)),
            None => function::instrument(self.signature, body, &own.within(options), owner),
        }
    }
}

/// The options of an attribute `#[trace]` inside of a block, which is removed. None if they are wrong.
fn own_options(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Option<Options> {
    let mut found = take_own(attributes).into_iter();
    let options = found.next().map_or_else(|| Ok(Options::default()), |own| Options::of_attribute(&own));
    for more in found {
        errors.add(Error::new_spanned(more, "a function has the attribute `#[trace]` once"));
    }
    options.map_err(|error| errors.add(error)).ok()
}

/// Removes the attributes `#[trace]`.
fn take_own(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let (own, others) = std::mem::take(attributes).into_iter().partition(is_own);
    *attributes = others;
    own
}

/// `#[trace]`, with or without a path in front of it.
fn is_own(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "trace")
}

/// A type as names of events have it: `Vec` for `Vec<T>`.
fn type_name(found: &Type) -> String {
    match found {
        Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().map_or_else(String::new, |last| last.ident.to_string())
        }
        Type::Reference(reference) => type_name(&reference.elem),
        Type::Paren(inner) => type_name(&inner.elem),
        Type::Group(inner) => type_name(&inner.elem),
        other => other.to_token_stream().to_string(),
    }
}

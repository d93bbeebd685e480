//! What items become, beside the same by hand.

use super::*;

/// The expansion of an item, and the same written by hand.
fn assert_expands(options: TokenStream, item: TokenStream, expected: TokenStream) {
    assert_eq!(expand(options, item).to_string(), expected.to_string());
}

#[test]
fn a_function_begins_with_a_duration_behind_its_items() {
    assert_expands(
        quote!(),
        quote! {
            #[inline]
            pub(crate) unsafe fn r#type<T>(x: T) -> Result<T, ()> where T: Copy {
                use a::b;
                b(x)?;
                Ok(x)
            }
        },
        quote! {
            #[inline]
            pub(crate) unsafe fn r#type<T>(x: T) -> Result<T, ()> where T: Copy {
                use a::b;
                ::trace_provider::duration!(::core::env!("CARGO_PKG_NAME"), "type");
                b(x)?;
                Ok(x)
            }
        },
    );
}

#[test]
fn arguments_are_borrowed_or_rendered_where_that_is_needed() {
    assert_expands(
        quote!(
            category = CATEGORY,
            name = "n",
            crate = a::b,
            args(a, text, y = a + 1, debug(&c), d = display(a + b), e = self::debug(a)),
        ),
        quote!(
            fn f(&self, a: u32, text: std::string::String, c: C) {}
        ),
        quote! {
            fn f(&self, a: u32, text: std::string::String, c: C) {
                a::b::duration!(
                    CATEGORY, "n",
                    "a" => a,
                    "text" => &text,
                    "y" => a + 1,
                    "c" => a::b::debug(& &c),
                    "d" => a::b::display(&(a + b)),
                    "e" => self::debug(a)
                );
            }
        },
    );
}

#[test]
fn an_async_function_awaits_a_traced_future() {
    let lints = quote!(
        unknown_lints,
        unreachable_code,
        clippy::diverging_sub_expression,
        clippy::empty_loop,
        clippy::let_unit_value,
        clippy::let_with_type_underscore,
        clippy::needless_return,
        clippy::type_complexity,
        clippy::unreachable
    );
    assert_expands(
        quote!(category = "c", args(a, text, n = a.len())),
        quote!(
            async fn f(a: &str, text: String) -> Result<impl Copy, E> {
                g(a).await
            }
        ),
        quote! {
            async fn f(a: &str, text: String) -> Result<impl Copy, E> {
                let is_recorded = ::trace_provider::category_enabled!("c");
                let described = ::trace_provider::trace_future_args!(
                    "c", "f",
                    "a" => a,
                    "text" => if is_recorded {
                        ::core::option::Option::Some(::trace_provider::display(&text))
                    } else {
                        ::core::option::Option::None
                    },
                    "n" => if is_recorded {
                        ::core::option::Option::Some(a.len())
                    } else {
                        ::core::option::Option::None
                    }
                );
                ::trace_provider::TraceFutureExt::trace(async move {
                    #[allow(#lints)]
                    if false {
                        let returned: Result<_, E> = loop {};
                        return returned;
                    }
                    g(a).await
                }, described).await
            }
        },
    );
}

#[test]
fn errors_leave_the_item_as_it_is() {
    let item = quote!(
        struct S {
            x: u32,
        }
    );
    let found = expand(quote!(), item.clone()).to_string();
    assert!(found.starts_with(&item.to_string()) && found.contains("compile_error"), "{found}");
}

#[test]
fn what_cannot_be_recorded_is_left_alone_in_blocks() {
    let item = quote! {
        mod m {
            const fn a() {}
            #[unsafe(naked)]
            extern "C" fn b() { x!() }
            trait T { fn d(&self); }
            struct S;
            macro_rules! m { () => { fn e() {} } }
            unsafe extern "C" { fn g(); }
        }
    };
    assert_expands(quote!(), item.clone(), item);
    let found = expand(
        quote!(),
        quote!(
            #[unsafe(naked)]
            extern "C" fn b() {
                x!()
            }
        ),
    )
    .to_string();
    assert!(found.contains("cannot record a naked function"), "{found}");
}

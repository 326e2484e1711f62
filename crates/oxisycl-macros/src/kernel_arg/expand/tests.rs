use proc_macro2::TokenStream;
use quote::quote;

use super::super::derive;

fn expanded(tokens: TokenStream) -> String {
    derive(tokens).unwrap().to_string()
}

#[track_caller]
fn assert_has(expanded: &str, part: TokenStream) {
    let [expanded, part] = [expanded, &part.to_string()].map(|text| text.replace(' ', ""));
    assert!(expanded.contains(&part), "{part}\nis not in\n{expanded}");
}

#[test]
fn the_device_form_has_the_fields_of_the_type() {
    let expanded = expanded(quote! {
        pub(crate) struct A {
            /// Said of a field.
            pub a: f32,
            #[serde(skip)]
            b: Vec<u8>,
        }
    });
    assert_has(
        &expanded,
        quote! {
            pub(crate) struct AOnDevice<'k>
            where f32: ::oxisycl::argument::KernelArg, Vec<u8>: ::oxisycl::argument::KernelArg
            {
                /// Said of a field.
                pub a: ::oxisycl::argument::Value<'k, f32>,
                b: ::oxisycl::argument::Value<'k, Vec<u8> >
            }
        },
    );
    assert_has(
        &expanded,
        quote! {
            pub(crate) struct ASent<>
            where f32: ::oxisycl::argument::KernelArg, Vec<u8>: ::oxisycl::argument::KernelArg
            {
                a: ::oxisycl::argument::Sent<f32>,
                b: ::oxisycl::argument::Sent<Vec<u8> >
            }
        },
    );
}

#[test]
fn parameters_of_arguments_are_those_of_each_form() {
    let expanded = expanded(quote! { struct A<B: Clone, const N: usize>([B; N], (B, u8)) where B: Copy; });
    assert_has(
        &expanded,
        quote! {
            struct AOnDevice<'k, B, const N: usize>([B; N], (B, ::oxisycl::argument::Value<'k, u8>,))
            where u8: ::oxisycl::argument::KernelArg;
        },
    );
    assert_has(&expanded, quote! { struct ASent<B: ::oxisycl::argument::DeviceForm, const N: usize> });
    assert_has(&expanded, quote! { type Sent = ASent<::oxisycl::argument::Sent<B>, N>; });
    assert_has(
        &expanded,
        quote! { type Value<'k> = AOnDevice<'k, <B as ::oxisycl::argument::DeviceForm>::Value<'k>, N>; },
    );
    assert_has(
        &expanded,
        quote! {
            impl<B: Clone + ::oxisycl::argument::KernelArg, const N: usize> ::oxisycl::argument::KernelArg for A<B, N>
            where B: Copy, u8: ::oxisycl::argument::KernelArg
        },
    );
}

#[test]
fn kept_parameters_keep_their_bounds_and_are_static() {
    let expanded = expanded(quote! { struct A<B: Copy>(Vec<B>) where B: Into<u8>; });
    for part in [
        quote! { struct ASent<B: Copy + 'static> },
        quote! { where B: Into<u8>, Vec<B>: ::oxisycl::argument::KernelArg },
        quote! { type Sent = ASent<B>; },
        quote! { type Value<'k> = AOnDevice<'k, B>; },
    ] {
        assert_has(&expanded, part);
    }
}

#[test]
fn lifetimes_are_not_part_of_what_crosses() {
    let expanded = expanded(quote! { struct A<'a, 'b: 'a, B>(C<'a, B>, D<'b, B>) where B: E<'a>; });
    for part in [
        quote! { struct ASent<B: 'static>(::oxisycl::argument::Sent<C<'static, B> >, ::oxisycl::argument::Sent<D<'static, B> >) },
        quote! { where B: E<'static>, C<'static, B>: ::oxisycl::argument::KernelArg },
        quote! { ::oxisycl::argument::KernelArg for A<'a, 'b, B> },
        quote! { C<'a, B>: ::oxisycl::argument::DeconstructTo<OxisyclHost, ::oxisycl::argument::Sent<C<'static, B> > > },
        quote! { type Value<'k> = AOnDevice<'k, B>; },
    ] {
        assert_has(&expanded, part);
    }
}

#[test]
fn a_type_may_be_its_own_device_form() {
    let expanded = expanded(quote! { #[oxisycl(device = Self)] struct A<'a, B, C>(D<'a, B>, C, u8); });
    assert!(!expanded.contains("OnDevice"), "{expanded}");
    assert_has(&expanded, quote! { type Value<'k> = A<'k, B, <C as ::oxisycl::argument::DeviceForm>::Value<'k> >; });
    assert_has(&expanded, quote! { struct ASent<B: 'static, C: ::oxisycl::argument::DeviceForm> });
    assert_has(
        &expanded,
        quote! {
            where
                D<'static, B>: ::oxisycl::argument::KernelArg<
                    Sent: for<'oxisycl_call> ::oxisycl::argument::DeviceForm<Value<'oxisycl_call> = D<'oxisycl_call, B>>
                >,
        },
    );
}

#[test]
fn values_are_taken_apart_by_all_fields() {
    let expanded_struct = expanded(quote! { struct A { a: u8, b: u16 } });
    assert_has(&expanded_struct, quote!(A { a: field_0, b: field_1 } =>));
    assert_has(&expanded_struct, quote!(ASent { a: field_0, b: field_1 }));
    let expanded_enum = expanded(quote! { enum A { B, C(u8), D { d: u16 } } });
    for part in [
        quote!(A::B { } => { ASent::B { } }),
        quote!(ASent::C { 0: field_0 }),
        quote!(ASent::D { d: field_0 } => AOnDevice::D),
        quote!(::oxisycl::argument::Part::Field("D.d")),
        quote!(::oxisycl::argument::ArgumentType::leaf),
    ] {
        assert_has(&expanded_enum, part);
    }
    assert!(![expanded_struct, expanded_enum].iter().any(|expanded| expanded.contains("..")));
}

#[test]
fn discriminants_are_those_of_the_device_form() {
    let expanded = expanded(quote! { #[repr(u8)] enum A { B = 3, C } });
    assert_has(
        &expanded,
        quote! { #[repr(u8)] #[allow(dead_code, missing_docs, trivial_bounds)] enum AOnDevice<> where { B = 3, C } },
    );
    assert_has(&expanded, quote! { enum ASent<> where { B, C } });
}

#[test]
fn by_hand_only_refers_to_what_the_type_says() {
    let expanded = expanded(quote! { #[oxisycl(by_hand, crate = ::a)] struct A<B: Copy>(B); });
    let expected = quote! {
        #[automatically_derived]
        impl<B: Copy> ::a::argument::KernelArg for A<B> where Self: ::a::argument::Decompose {
            type Sent = ::a::argument::Rebuilt<Self>;
        }
        #[automatically_derived]
        impl<B: Copy, OxisyclHost: ::a::argument::LaunchHost> ::a::argument::Deconstruct<OxisyclHost> for A<B>
        where
            Self: ::a::argument::Decompose,
            <Self as ::a::argument::Decompose>::Parts: ::a::argument::Deconstruct<OxisyclHost>
        {
            #[inline]
            unsafe fn deconstruct(
                self,
                host: &mut OxisyclHost,
            ) -> ::core::result::Result<::a::argument::Rebuilt<Self>, OxisyclHost::Error> {
                unsafe { ::a::argument::Rebuilt::deconstruct(self, host) }
            }
        }
    };
    assert_eq!(expanded, expected.to_string());
}

//! Writes the types and the implementations. Every bound and check carries the span of the field that it is about.

mod by_hand;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Field, Fields, Member};

use super::forms::{Parameters, Place, ends, form, parameters};
use super::model::{Argument, Parts, Shape, docs};
use crate::tokens::located_at;

pub(super) fn expand(argument: &Argument) -> TokenStream {
    let Some(parts) = &argument.parts else { return by_hand::expand(argument) };
    let sent = format_ident!("{}Sent", argument.ident);
    let expansion = Expansion { argument, parts, sent };
    let device_form = expansion.device_form();
    let (sent, kernel_arg) = (expansion.sent(), expansion.kernel_arg());
    let (reconstruct, deconstruct) = (expansion.reconstruct(), expansion.deconstruct());
    quote! {
        #device_form
        #[allow(dead_code, trivial_bounds, unreachable_pub, unused_variables, clippy::all)]
        const _: () = {
            #sent
            #kernel_arg
            #reconstruct
            #deconstruct
        };
    }
}

struct Expansion<'a> {
    argument: &'a Argument,
    parts: &'a Parts,
    /// The name of what crosses.
    sent: Ident,
}

impl Expansion<'_> {
    /// The type that kernels get, unless it is the argument's own.
    fn device_form(&self) -> Option<TokenStream> {
        let name = self.parts.device.as_ref()?;
        let Argument { ident, vis, .. } = self.argument;
        let mut parameters = parameters(self.argument, self.parts, Place::Device);
        if ends(self.parts) {
            parameters.declared.insert(0, quote!('k));
        }
        let text = format!(" What a kernel gets of [`{ident}`].");
        let repr = &self.parts.repr;
        let declaration = self.declare(name, &parameters, Place::Device);
        Some(quote! {
            #[doc = #text]
            #(#repr)*
            #[allow(dead_code, missing_docs, trivial_bounds)]
            #vis #declaration
        })
    }

    /// The type that crosses.
    fn sent(&self) -> TokenStream {
        let (vis, sent) = (&self.argument.vis, &self.sent);
        let parameters = parameters(self.argument, self.parts, Place::Sent);
        let declaration = self.declare(sent, &parameters, Place::Sent);
        let Parameters { declared, passed, predicates } = parameters;
        quote! {
            #vis #declaration
            impl<#(#declared),*> ::core::clone::Clone for #sent<#(#passed),*> where #(#predicates),* {
                #[inline(always)]
                fn clone(&self) -> Self {
                    *self
                }
            }
            impl<#(#declared),*> ::core::marker::Copy for #sent<#(#passed),*> where #(#predicates),* {}
        }
    }

    /// A type of the argument's shape, from `struct` or `enum` on.
    fn declare(&self, name: &Ident, parameters: &Parameters, place: Place) -> TokenStream {
        let Parameters { declared, predicates, .. } = parameters;
        let is_public = matches!(place, Place::Device);
        let fields = |shape: &Shape| {
            let fields = shape.fields.iter().map(|field| {
                let docs = if is_public { docs(&field.attrs) } else { Vec::new() };
                let vis = is_public.then_some(&field.vis);
                let name = field.ident.iter();
                let of = form(self.argument, self.parts, &field.ty, place);
                quote!(#(#docs)* #vis #(#name:)* #of)
            });
            match &shape.fields {
                Fields::Named(_) => quote!({ #(#fields),* }),
                Fields::Unnamed(_) => quote!((#(#fields),*)),
                Fields::Unit => TokenStream::new(),
            }
        };
        if !self.parts.is_enum {
            let shape = &self.parts.shapes[0];
            let fields = fields(shape);
            return match &shape.fields {
                Fields::Named(_) => quote! { struct #name<#(#declared),*> where #(#predicates),* #fields },
                _ => quote! { struct #name<#(#declared),*> #fields where #(#predicates),*; },
            };
        }
        let variants = self.parts.shapes.iter().map(|shape| {
            let (docs, variant, fields) = (&shape.docs, &shape.variant, fields(shape));
            let (docs, discriminant) = match place {
                Place::Device => (&**docs, shape.discriminant.iter()),
                _ => (&[][..], None.iter()),
            };
            quote!(#(#docs)* #variant #fields #(= #discriminant)*)
        });
        quote! { enum #name<#(#declared),*> where #(#predicates),* { #(#variants),* } }
    }

    fn kernel_arg(&self) -> TokenStream {
        let Argument { ident, facade, .. } = self.argument;
        let Parameters { declared, passed, predicates } = parameters(self.argument, self.parts, Place::Host);
        let sent = self.sent_of_host();
        quote! {
            #[automatically_derived]
            impl<#(#declared),*> #facade::argument::KernelArg for #ident<#(#passed),*> where #(#predicates),* {
                type Sent = #sent;
            }
        }
    }

    /// What crosses, where the type's parameters are those of the host.
    fn sent_of_host(&self) -> TokenStream {
        let (facade, sent) = (&self.argument.facade, &self.sent);
        let passed = self.argument.generics.params.iter().filter_map(|parameter| match parameter {
            syn::GenericParam::Lifetime(_) => None,
            syn::GenericParam::Type(parameter) if self.parts.roles.arguments.contains(&parameter.ident) => {
                let ident = &parameter.ident;
                Some(quote!(#facade::argument::Sent<#ident>))
            }
            syn::GenericParam::Type(parameter) => Some(parameter.ident.to_token_stream()),
            syn::GenericParam::Const(parameter) => Some(parameter.ident.to_token_stream()),
        });
        quote!(#sent<#(#passed),*>)
    }

    fn reconstruct(&self) -> TokenStream {
        let (facade, sent, ident) = (&self.argument.facade, &self.sent, &self.argument.ident);
        let Parameters { declared, passed, predicates } = parameters(self.argument, self.parts, Place::Sent);
        let (value, described) = (self.value(), self.described());
        let device = self.parts.device.as_ref().unwrap_or(ident);
        let arms = self.parts.shapes.iter().map(|shape| {
            let (variant, members, names) = (shape.variant.iter(), members(shape), names(shape));
            let to = variant.clone();
            let made = shape.fields.iter().zip(&names).zip(&members).map(|((field, name), member)| {
                let of = form(self.argument, self.parts, &field.ty, Place::Sent);
                let made = quote!(<#of as #facade::argument::DeviceForm>::reconstruct(#name, launch));
                let made = located_at(&made, field.ty.span());
                quote!(#member: #made)
            });
            quote!(#sent #(:: #variant)* { #(#members: #names),* } => #device #(:: #to)* { #(#made),* })
        });
        quote! {
            // SAFETY: it holds what crosses for its fields and nothing else, and `TYPE` has each at its place.
            #[automatically_derived]
            unsafe impl<#(#declared),*> #facade::argument::DeviceForm for #sent<#(#passed),*> where #(#predicates),* {
                type Value<'k> = #value;
                const TYPE: &'static #facade::argument::ArgumentType = #described;

                #[inline(always)]
                unsafe fn reconstruct<'k>(self, launch: #facade::argument::Launch<'k>) -> #value {
                    // SAFETY: by the contract of this function.
                    unsafe { match self { #(#arms),* } }
                }
            }
        }
    }

    /// What kernels get, where the type's parameters are what crosses for arguments.
    fn value(&self) -> TokenStream {
        let facade = &self.argument.facade;
        let is_own = self.parts.device.is_none();
        let name = self.parts.device.as_ref().unwrap_or(&self.argument.ident);
        let of_call = (!is_own && ends(self.parts)).then(|| quote!('k)).into_iter();
        let passed = self.argument.generics.params.iter().filter_map(|parameter| match parameter {
            syn::GenericParam::Lifetime(_) => is_own.then(|| quote!('k)),
            syn::GenericParam::Type(parameter) if self.parts.roles.arguments.contains(&parameter.ident) => {
                let ident = &parameter.ident;
                Some(quote!(<#ident as #facade::argument::DeviceForm>::Value<'k>))
            }
            syn::GenericParam::Type(parameter) => Some(parameter.ident.to_token_stream()),
            syn::GenericParam::Const(parameter) => Some(parameter.ident.to_token_stream()),
        });
        let passed = of_call.chain(passed);
        quote!(#name<#(#passed),*>)
    }

    /// The list of what crosses. The parts of an enum depend on its value, so that it is one leaf.
    fn described(&self) -> TokenStream {
        let facade = &self.argument.facade;
        let of = quote!(#facade::argument::ArgumentType);
        if self.parts.is_enum {
            return quote! {
                &#of::leaf(
                    ::core::any::type_name::<<Self as #facade::argument::DeviceForm>::Value<'static>>,
                    ::core::mem::size_of::<Self>(),
                )
            };
        }
        let shape = &self.parts.shapes[0];
        let parts = shape.fields.iter().zip(members(shape)).map(|(field, member)| {
            let (name, sent) = (name_of(&member), form(self.argument, self.parts, &field.ty, Place::Sent));
            quote! {
                #facade::argument::ArgumentPart {
                    name: #name,
                    offset: ::core::mem::offset_of!(Self, #member),
                    part: <#sent as #facade::argument::DeviceForm>::TYPE,
                }
            }
        });
        quote! {
            &#of {
                type_name: ::core::any::type_name::<Self>,
                size: ::core::mem::size_of::<Self>(),
                length: #of::NO_ARRAY,
                parts: &[#(#parts),*],
            }
        }
    }

    /// Attributes below the derive may change the type after this macro has seen it. It is taken apart by a pattern with all of its fields, so that a
    /// type that then has others does not compile.
    fn deconstruct(&self) -> TokenStream {
        let Argument { ident, facade, .. } = self.argument;
        let Parameters { mut declared, passed, mut predicates } = parameters(self.argument, self.parts, Place::Host);
        declared.push(quote!(OxisyclHost: #facade::argument::LaunchHost));
        let (sent, sent_of_host) = (&self.sent, self.sent_of_host());
        predicates.extend(self.parts.fields().map(|field| {
            let (of, to) = (&field.ty, self.taken_apart(field));
            quote_spanned!(of.span()=> #of: #to)
        }));
        let arms = self.parts.shapes.iter().map(|shape| {
            let (variant, members, names) = (shape.variant.iter(), members(shape), names(shape));
            let to = variant.clone();
            let steps = shape.fields.iter().zip(&names).zip(&members).map(|((field, name), member)| {
                let path = match &shape.variant {
                    Some(variant) => format!("{}.{}", variant.unraw(), name_of(member)),
                    None => name_of(member),
                };
                self.step(field, name, &path)
            });
            quote! {
                #ident #(:: #variant)* { #(#members: #names),* } => {
                    #(#steps)*
                    #sent #(:: #to)* { #(#members: #names),* }
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl<#(#declared),*> #facade::argument::Deconstruct<OxisyclHost> for #ident<#(#passed),*>
            where
                #(#predicates),*
            {
                #[inline(always)]
                unsafe fn deconstruct(
                    self,
                    host: &mut OxisyclHost,
                ) -> ::core::result::Result<#sent_of_host, OxisyclHost::Error> {
                    ::core::result::Result::Ok(match self { #(#arms),* })
                }
            }
        }
    }

    /// The trait by which a field is taken apart.
    fn taken_apart(&self, field: &Field) -> TokenStream {
        let facade = located_at(&self.argument.facade, field.ty.span());
        let sent = form(self.argument, self.parts, &field.ty, Place::Host);
        let name = located_at(&quote!(argument::DeconstructTo), field.ty.span());
        quote!(#facade::#name<OxisyclHost, #sent>)
    }

    /// Takes one field apart. If that fails, those before it have been, and those after it are dropped as they are.
    fn step(&self, field: &Field, name: &Ident, path: &str) -> TokenStream {
        let (of, to, facade) = (&field.ty, self.taken_apart(field), &self.argument.facade);
        let call = quote!(::deconstruct_to(#name, host));
        let call = located_at(&call, field.ty.span());
        quote! {
            // SAFETY: by the contract of this function.
            let #name = match unsafe { <#of as #to>#call } {
                ::core::result::Result::Ok(sent) => sent,
                ::core::result::Result::Err(error) => {
                    return ::core::result::Result::Err(<OxisyclHost as #facade::argument::LaunchHost>::within(
                        error,
                        #facade::argument::Part::Field(#path),
                    ));
                }
            };
        }
    }
}

fn members(shape: &Shape) -> Vec<Member> {
    shape.fields.members().collect()
}

/// Names for the values of fields.
fn names(shape: &Shape) -> Vec<Ident> {
    (0..shape.fields.len()).map(|index| format_ident!("field_{index}", span = Span::mixed_site())).collect()
}

/// A field's name, for lists and messages.
fn name_of(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

#[cfg(test)]
mod tests;

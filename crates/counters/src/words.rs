//! Values as numbers one after the other: how they are passed to other threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What can be written as words of 64 bits, and read again.
pub trait Words: Sized {
    /// Appends it.
    fn put(&self, to: &mut Vec<u64>);

    /// Takes it from the front; `None`: these are not its words.
    fn take(from: &mut &[u64]) -> Option<Self>;
}

/// Writes and reads a struct by its fields.
#[macro_export]
macro_rules! words {
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::Words for $name {
            fn put(&self, to: &mut Vec<u64>) {
                $($crate::Words::put(&self.$field, to);)*
            }

            fn take(from: &mut &[u64]) -> Option<Self> {
                Some(Self { $($field: $crate::Words::take(from)?,)* })
            }
        }
    };
}

impl Words for u64 {
    fn put(&self, to: &mut Vec<u64>) {
        to.push(*self);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }
}

macro_rules! narrower {
    ($($type:ty),*) => {
        $(impl Words for $type {
            fn put(&self, to: &mut Vec<u64>) {
                to.push(*self as u64);
            }

            fn take(from: &mut &[u64]) -> Option<Self> {
                Self::try_from(u64::take(from)?).ok()
            }
        })*
    };
}

narrower!(u8, u16, u32, usize);

impl Words for bool {
    fn put(&self, to: &mut Vec<u64>) {
        to.push((*self).into());
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        match u64::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Words for IpAddr {
    fn put(&self, to: &mut Vec<u64>) {
        let bits = match self {
            Self::V4(address) => u128::from(address.to_bits()),
            Self::V6(address) => address.to_bits(),
        };
        self.is_ipv6().put(to);
        to.extend([(bits >> 64) as u64, bits as u64]);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        let (is_v6, high, low) = (bool::take(from)?, u64::take(from)?, u64::take(from)?);
        let bits = u128::from(high) << 64 | u128::from(low);
        Some(if is_v6 {
            Ipv6Addr::from_bits(bits).into()
        } else {
            Ipv4Addr::from_bits(u32::try_from(bits).ok()?).into()
        })
    }
}

impl<T: Words> Words for Option<T> {
    fn put(&self, to: &mut Vec<u64>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Words + Copy + Default, const N: usize> Words for [T; N] {
    fn put(&self, to: &mut Vec<u64>) {
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        let mut all = [T::default(); N];
        for value in &mut all {
            *value = T::take(from)?;
        }
        Some(all)
    }
}

/// Appends what will be taken as a list, of which there need be none here.
pub fn put_all<T: Words>(all: impl ExactSizeIterator<Item = T>, to: &mut Vec<u64>) {
    all.len().put(to);
    all.for_each(|value| value.put(to));
}

impl<T: Words> Words for Vec<T> {
    fn put(&self, to: &mut Vec<u64>) {
        self.len().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        let length = usize::take(from)?;
        // Each has a word at least.
        if length > from.len() {
            return None;
        }
        (0..length).map(|_| T::take(from)).collect()
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn put(&self, to: &mut Vec<u64>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

//! Numbers that Rust and C++ both have to know, written once.

/// Makes constants, and `CPP`, the same for the kernels, with a prefix. The second string says where they stand.
macro_rules! constants {
    ($prefix:literal, $file:literal; $($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $value;)*

        /// The same constants for the kernels, with a prefix.
        pub const CPP: &str = concat!(
            "// Made of ", $file, ".\n",
            $("#define ", $prefix, stringify!($name), " ", stringify!($value), "\n",)*
        );
    };
}

pub(crate) use constants;

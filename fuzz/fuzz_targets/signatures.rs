//! Signatures as TOML, in their compiled form, and as other people's lists. What is built is written, read, and matches as before.
#![no_main]

use dpi::Category;
use dpi::classify::Carrier;
use dpi::signatures::{Attributes, Builder, Bundle, Imported};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A domain list is a file, since it may include others beside it.
static LIST: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("fuzz-signatures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a list");
    folder.join("list")
});

fuzz_target!(|data: &[u8]| {
    let Some((form, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    match form % 4 {
        0 => {
            let mut builder = Builder::new();
            builder.read("fuzz.toml", &text);
            if let Ok(built) = builder.build() {
                again(&built.bundle, data);
            }
        }
        1 => {
            if let Ok(built) = Bundle::from_compiled(data) {
                again(&built.bundle, data);
            }
            // What a fuzzer would hardly guess: the front, the length and the checksum are right.
            let mut file =
                [b"MILLSIG\n\x01\0".as_slice(), &(data.len() as u32 + 18).to_le_bytes(), data].concat();
            file.extend(crc32fast::hash(&file).to_le_bytes());
            if let Ok(built) = Bundle::from_compiled(&file) {
                again(&built.bundle, data);
            }
        }
        2 => {
            std::fs::write(&*LIST, data).expect("a place for a list");
            if let Ok(imported) = Imported::domain_list(&LIST, &Attributes::default()) {
                used(&imported, data);
            }
        }
        _ => used(&Imported::hosts_file("hosts", &text), data),
    }
});

/// The compiled form holds all of it.
fn again(bundle: &Bundle, data: &[u8]) {
    let compiled = bundle.compiled();
    let read = Bundle::from_compiled(&compiled).expect("what was written is read").bundle;
    assert_eq!(read.compiled(), compiled);
    assert_eq!((read.len(), read.version()), (bundle.len(), bundle.version()));
    let text = String::from_utf8_lossy(data);
    for name in text.split(|it: char| it.is_whitespace() || it == '"').take(64) {
        let bytes = name.as_bytes();
        assert_eq!(read.host(bytes), bundle.host(bytes));
        assert_eq!(read.certificate(bytes), bundle.certificate(bytes));
        assert_eq!(read.agent(bytes), bundle.agent(bytes));
        assert_eq!(read.alpn(bytes), bundle.alpn(bytes));
        assert_eq!(read.pattern(Carrier::Tcp, bytes), bundle.pattern(Carrier::Tcp, bytes));
        if let Ok(address) = name.parse() {
            assert_eq!(read.address(address), bundle.address(address));
        }
    }
    for (rule, written) in read.rules().zip(bundle.rules()) {
        assert_eq!((rule.kind, rule.text), (written.kind, written.text));
    }
}

/// What was read of a list can be built, and is TOML that can be built.
fn used(imported: &Imported, data: &[u8]) {
    let mut builder = Builder::new();
    let list = builder.application("list", None, Category::Web).expect("a name");
    if imported.add_to(&mut builder, list).is_ok()
        && let Ok(built) = builder.build()
    {
        again(&built.bundle, data);
        let text = imported.to_toml("list", None, Category::Web).expect("a name");
        let mut builder = Builder::new();
        builder.read("list.toml", &text);
        let read = builder.build().unwrap_or_else(|findings| panic!("{findings}\n{text}")).bundle;
        assert_eq!(read.len(), built.bundle.len());
    }
}

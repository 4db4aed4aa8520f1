//! Numbers of standards that lie beside the repository.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The text of a file of `shared/data`, in a folder above this crate; or the test says that it is absent.
pub fn shared_data(name: &str) -> Option<String> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = above.map(|folder| folder.join("shared/data").join(name)).find(|path| path.is_file());
    if found.is_none() {
        testing::skipped(format!("no shared/data/{name} above this crate"));
    }
    found.map(|path| std::fs::read_to_string(path).unwrap())
}

//! Compiled kernels on disk: to compile them takes a second, to read them nothing.
//!
//! What lies there is run by the GPU, with access to all that the process has there. So the folder must be this user's and writable by nobody else, and
//! so must be the files; if they aren't, nothing is read and nothing written. A file's name is made of all that decides what
//! comes out of the compiler, and its last 32 octets of all others, so half a file is none.

use super::compile::{self, Arch, Cubin};
use crate::device::Failure;
use crate::kernels::Source;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No cubin of ours is larger.
const MOST_OCTETS: u64 = 64 << 20;

/// Octets of a file's digest.
const DIGEST: usize = 32;

/// A folder with compiled kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The user's: `millrace/kernels` under `$XDG_CACHE_HOME` or `~/.cache`; none without a home.
    pub fn of_user() -> Option<Self> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self::at(base.join("millrace/kernels")))
    }

    /// In another folder, which is made when it is needed.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A file of kernels for an architecture: as it was compiled before, or else compiled now and kept, if it can be kept.
    pub fn get(&self, source: &Source, arch: Arch) -> Result<Cubin, Failure> {
        let version = compile::version()?;
        let path = self.folder.join(name(source, arch, version));
        if let Ok(octets) = self.read(&path) {
            return Ok(Cubin { octets, log: String::new() });
        }
        let cubin = compile::compile(source, arch)?;
        // What can't be kept is compiled again next time.
        let _ = self.write(&path, &cubin.octets);
        Ok(cubin)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !is_ours(&std::fs::symlink_metadata(&self.folder)?)?
            || !is_ours(&about)?
            || !about.is_file()
            || about.len() > MOST_OCTETS
        {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut octets = Vec::new();
        file.take(MOST_OCTETS).read_to_end(&mut octets)?;
        let digest = octets.split_off(octets.len().saturating_sub(DIGEST));
        if Sha256::digest(&octets)[..] == digest[..] {
            Ok(octets)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if !is_ours(&std::fs::symlink_metadata(&self.folder)?)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // Another process may do the same now: each writes a file of its own, and the last one stays.
        let own = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
        let written = file
            .write_all(octets)
            .and_then(|()| file.write_all(&Sha256::digest(octets)))
            .and_then(|()| std::fs::rename(&own, path));
        if written.is_err() {
            std::fs::remove_file(&own)?;
        }
        written
    }
}

/// Whether it is this user's, and nobody else may write to it.
fn is_ours(about: &Metadata) -> io::Result<bool> {
    let user = std::fs::metadata("/proc/self")?.uid();
    Ok(about.uid() == user && about.mode() & 0o022 == 0 && !about.is_symlink())
}

fn name(source: &Source, arch: Arch, version: (u32, u32)) -> String {
    use std::fmt::Write;
    let mut digest = Sha256::new();
    for input in compile::inputs(source, arch, version) {
        // Lengths too, so that nothing moves from one input to the next.
        digest.update(input.len().to_le_bytes());
        digest.update(input);
    }
    let mut name = source.name.trim_end_matches(".cu").to_owned();
    for octet in &digest.finalize()[..16] {
        let _ = write!(name, "{octet:02x}");
    }
    name + ".cubin"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_was_written_is_read_again_and_nothing_that_was_spoilt() {
        let directory = testing::Directory::new("kernel-cache");
        let cache = Cache::at(directory.0.join("a/b"));
        let path = cache.folder.join("x.cubin");
        assert!(cache.read(&path).is_err());
        cache.write(&path, b"kernel").unwrap();
        cache.write(&path, b"another").unwrap();
        assert_eq!(cache.read(&path).unwrap(), b"another");
        assert_eq!(std::fs::read_dir(&cache.folder).unwrap().count(), 1);
        let mut octets = std::fs::read(&path).unwrap();
        octets[0] ^= 1;
        std::fs::write(&path, &octets).unwrap();
        assert!(cache.read(&path).is_err());
        octets[0] ^= 1;
        octets.pop();
        std::fs::write(&path, &octets).unwrap();
        assert!(cache.read(&path).is_err());
        std::fs::write(&path, b"short").unwrap();
        assert!(cache.read(&path).is_err());
    }

    #[test]
    fn what_others_may_have_written_is_not_read() {
        let directory = testing::Directory::new("kernel-cache");
        let cache = Cache::at(directory.0.join("kernels"));
        let path = cache.folder.join("x.cubin");
        cache.write(&path, b"kernel").unwrap();
        set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(cache.read(&path).is_err());
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(cache.read(&path).is_ok());
        set_permissions(&cache.folder, Permissions::from_mode(0o777)).unwrap();
        assert!(cache.read(&path).is_err() && cache.write(&path, b"kernel").is_err());
        set_permissions(&cache.folder, Permissions::from_mode(0o700)).unwrap();
        let link = directory.0.join("link");
        symlink(&cache.folder, &link).unwrap();
        let elsewhere = Cache::at(link);
        assert!(elsewhere.read(&elsewhere.folder.join("x.cubin")).is_err());
    }

    #[test]
    fn another_source_architecture_or_compiler_has_another_name() {
        let source = |text| Source { name: "k.cu", text };
        let names = [
            name(&source("a"), Arch(90), (13, 0)),
            name(&source("b"), Arch(90), (13, 0)),
            name(&source("a"), Arch(80), (13, 0)),
            name(&source("a"), Arch(90), (12, 0)),
        ];
        assert!((0..4).all(|at| !names[at + 1..].contains(&names[at])));
        assert!(names[0].starts_with('k'));
    }
}

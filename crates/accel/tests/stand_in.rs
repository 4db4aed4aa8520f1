//! What stands in for a GPU where there is none: the kernels' headers, compiled for the host, and with them a driver that isn't NVIDIA's (`fake_cuda.cpp`). Tests of
//! other crates take it by this file's path.

use accel::kernels;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What becomes of a C++ source and the kernels' headers.
pub fn build(name: &str, source: &str, options: &[&str]) -> Result<PathBuf, String> {
    let layout = kernels::layout();
    let mut hasher = DefaultHasher::new();
    (source, &layout, options, kernels::HEADERS.iter().map(|header| header.text).collect::<Vec<_>>())
        .hash(&mut hasher);
    let name = format!("{name}-{:016x}", hasher.finish());
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = place.join(&name);
    if program.exists() {
        return Ok(program);
    }
    // Of two runs at a time, each has a folder of its own, and the program appears whole.
    let unique = format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id());
    let folder = place.join(unique);
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    kernels::HEADERS.iter().for_each(|header| write(header.name, header.text));
    write("layout.cuh", &layout);
    write("source.cpp", source);
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let compiled = Command::new(&compiler)
        .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"])
        .args(options)
        .args(["-o", "built", "source.cpp"])
        .current_dir(&folder)
        .output();
    let output = compiled.map_err(|error| format!("there is no C++ compiler ({compiler}: {error})"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(folder.join("built"), &program).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(program)
}

/// The folder with both libraries, or why there is none.
#[cfg(feature = "cuda")]
fn libraries() -> Result<String, String> {
    const SOURCE: &str = include_str!("fake_cuda.cpp");
    let library = build("fake_cuda", SOURCE, &["-shared", "-fPIC", "-pthread"])?;
    let folder = library.with_extension("d");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libcuda.so", "libnvrtc.so"] {
        let link = folder.join(name);
        if std::os::unix::fs::symlink(&library, &link).is_err() {
            assert!(link.exists());
        }
    }
    Ok(folder.to_str().unwrap().to_owned())
}

/// Runs the ignored test `body` of the caller's file in a process that finds them in the place of NVIDIA's, or says why it can't.
#[cfg(feature = "cuda")]
#[track_caller]
pub fn with_a_fake(body: &str, settings: &[(&str, &str)]) {
    match libraries() {
        Ok(folder) => {
            let home = testing::Directory::new("fake-cuda");
            let mut settings = settings.to_vec();
            settings
                .extend([("LD_LIBRARY_PATH", folder.as_str()), ("XDG_CACHE_HOME", home.0.to_str().unwrap())]);
            testing::in_process_with(body, &settings);
        }
        Err(why) => testing::skipped(why),
    }
}

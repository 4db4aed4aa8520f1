//! What people read before the code: that links lead somewhere, that every page can be found, and that the README stays short.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// All pages that are written by hand or from the code.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = [root.to_owned(), root.join("docs"), root.join("docs/adr")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect::<Vec<_>>();
    pages.sort();
    pages
}

/// A page without its blocks of code.
fn prose(page: &Path) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    text.split("```").step_by(2).collect()
}

/// Where a page's links lead.
fn links(page: &Path) -> Vec<String> {
    let text = prose(page);
    text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

/// The anchors of a page's headings, as forges make them, and those that it sets itself.
fn anchors(page: &Path) -> HashSet<String> {
    let text = prose(page);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    let set = text.split("<a name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.chain(set).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        for link in links(&page) {
            if link.starts_with("https://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            assert!(target.exists(), "{}: there is no {link}", page.display());
            let found = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(found, "{}: {path} has no heading for #{anchor}", page.display());
        }
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/README.md");
    let folder = index.parent().unwrap();
    let linked: HashSet<_> =
        links(&index).iter().filter_map(|link| folder.join(link).canonicalize().ok()).collect();
    for page in pages().iter().filter(|page| page.starts_with(folder) && **page != index) {
        assert!(
            linked.contains(&page.canonicalize().unwrap()),
            "docs/README.md doesn't name {}",
            page.display()
        );
    }
}

#[test]
fn the_readme_fits_two_screens() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(
        text.lines().count() <= 95,
        "README.md has {} lines: figures and details have pages of their own",
        text.lines().count()
    );
    let long = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "a line of more than 100 columns");
}

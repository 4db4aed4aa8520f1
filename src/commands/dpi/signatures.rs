//! `millrace dpi signatures`: what applications are found by.

use crate::exit::{Exit, Failure};
use crate::output;
use api::table::{Side, Table};
use dpi::Category;
use dpi::signatures::{Attributes, Built, Bundle, Imported, LoadError};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is done with signatures.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Say what is wrong with files of your own, laid over the signatures that are built in.
    Check {
        /// Each is laid over those before it.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Write the signatures that are built in, with files of your own over them, as one compiled file.
    Build {
        /// Each is laid over those before it.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Where to.
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// List applications: all, or those in whose name or category this text is.
    List {
        /// Part of a name, or of a category.
        #[arg(default_value = "", value_name = "TEXT")]
        text: String,
        /// Files of your own.
        #[arg(long, value_name = "FILE")]
        with: Vec<PathBuf>,
    },
    /// Say whose a host name or an address is, and by which rule.
    Test {
        /// The name or the address.
        #[arg(value_name = "HOST")]
        host: String,
        /// Files of your own.
        #[arg(long, value_name = "FILE")]
        with: Vec<PathBuf>,
    },
    /// Make signatures of a list that others keep; they are written to standard output.
    Import {
        /// How the list is written.
        form: Form,
        /// The list.
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// The application that all of it belongs to.
        #[arg(long, value_name = "NAME")]
        application: String,
        /// Its category.
        #[arg(long, value_name = "CATEGORY", value_parser = category)]
        category: Category,
        /// Only lines with one of these attributes (`ads`), and none of those with a minus (`-cn`).
        #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_name = "NAME,...")]
        attributes: Vec<String>,
    },
}

/// How a list is written.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Form {
    /// As v2fly's community writes its lists of domains.
    DomainList,
    /// As /etc/hosts.
    Hosts,
}

fn category(name: &str) -> Result<Category, String> {
    Category::by_name(name).ok_or_else(|| {
        let known: Vec<_> = Category::ALL.iter().map(|it| it.name()).collect();
        format!("there are: {}", known.join(", "))
    })
}

fn usage(error: LoadError) -> Failure {
    Failure::new(Exit::Usage, error)
}

/// What is built in, with these over it.
fn with(files: &[PathBuf]) -> Result<Built, Failure> {
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    Bundle::built_in().with_files(&paths).map_err(usage)
}

/// Runs the command.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Check { files } => {
            let Built { bundle, warnings } = with(files)?;
            let mut text = String::new();
            if !warnings.is_empty() {
                let _ = writeln!(text, "{warnings}");
            }
            let summary = bundle.summary();
            let _ = writeln!(
                text,
                "right: with what is built in, {} applications by {} rules; version {}",
                summary.applications,
                bundle.rules().len(),
                summary.version
            );
            output::text(&text)
        }
        Command::Build { files, output } => {
            let bundle = with(files)?.bundle;
            bundle.write_compiled(output).map_err(|error| Failure::new(Exit::Failed, error))?;
            let (path, version) = (output.display(), bundle.version());
            output::text(&format!("{path}: {} applications, version {version}\n", bundle.len()))
        }
        Command::List { text, with: files } => {
            let mut table = Table::new(&[
                ("APPLICATION", Side::Left),
                ("AS PEOPLE WRITE IT", Side::Left),
                ("CATEGORY", Side::Left),
                ("PART OF", Side::Left),
                ("RULES", Side::Right),
            ]);
            let rows = with(files)?.bundle.list(text);
            if rows.is_empty() {
                return Err(Failure::new(
                    Exit::Failed,
                    format!("no application has \"{text}\" in its name or category"),
                ));
            }
            for row in rows {
                let parent = row.parent.unwrap_or_else(|| "-".to_owned());
                table.row([
                    row.name,
                    row.display,
                    row.category.name().to_owned(),
                    parent,
                    row.rules.to_string(),
                ]);
            }
            output::text(&table.to_string())
        }
        Command::Test { host, with: files } => {
            let bundle = with(files)?.bundle;
            let found = bundle.explain(host);
            let it = found.ok_or_else(|| {
                Failure::new(Exit::Failed, format!("{host} is no application's that is known"))
            })?;
            output::text(&format!(
                "{host}: {} ({}), by the {} {} ({}:{})\n",
                it.applications.join(", a part of "),
                it.category.name(),
                it.kind.name(),
                it.rule,
                it.file,
                it.line
            ))
        }
        Command::Import { form, path, application, category, attributes } => {
            let imported = match form {
                Form::DomainList => {
                    let (without, with): (Vec<_>, Vec<_>) =
                        attributes.iter().cloned().partition(|it| it.starts_with('-'));
                    let without = without.iter().map(|it| it.trim_start_matches('-').to_owned()).collect();
                    Imported::domain_list(path, &Attributes { with, without }).map_err(usage)?
                }
                Form::Hosts => {
                    let failed =
                        |error| Failure::new(Exit::Usage, format!("can't read {}: {error}", path.display()));
                    let text = std::fs::read_to_string(path).map_err(failed)?;
                    Imported::hosts_file(&path.display().to_string(), &text)
                }
            };
            let text = imported.to_toml(application, None, *category);
            output::text(&text.map_err(|error| Failure::new(Exit::Usage, error))?)
        }
    }
}

//! The commands that show the state of a cluster: `why`, `status` and `--version`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use crownlabs::{Answer, ClusterOptions, Format};

use super::terminal::{print, print_coloured};
use super::{ClusterArguments, EXIT_FOUND, OutputArguments, VERSION, block_on};

/// The arguments of `why`.
#[derive(Args)]
pub struct WhyArguments {
    /// The name of the Instance, optionally as NAMESPACE/NAME.
    #[arg(value_name = "[NAMESPACE/]INSTANCE")]
    instance: String,
    /// The namespace of the Instance; by default, the namespace of the context.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Exit with 4 if the Instance is not ready: it is not in the state that its present spec asks for, or is being
    /// deleted.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// The arguments of `status`.
#[derive(Args)]
pub struct StatusArguments {
    /// The name of a Workspace. Without it, the state of the installation is shown.
    workspace: Option<String>,
    /// List only the Instances in this namespace; without a Workspace, show only the installation in this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Show the loops of all pods and all problems, not only the loops of the leader and the ten oldest problems.
    #[arg(long, conflicts_with = "workspace")]
    all: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// The arguments of `--version`.
#[derive(Args)]
pub struct VersionArguments {
    /// Print the versions of this program, the daemon and the API server.
    ///
    /// Takes at most 15 s. Without a kubeconfig, only the version of this program is printed.
    #[arg(short = 'V', long)]
    version: bool,
    /// The kubeconfig; otherwise KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE", requires = "version")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default, its current context.
    #[arg(long, value_name = "NAME", requires = "version")]
    context: Option<String>,
}

/// Explains an Instance. Exits with 4 on request if it is not ready.
pub fn why(arguments: WhyArguments) -> anyhow::Result<ExitCode> {
    let WhyArguments { instance, namespace, exit_code, cluster, output } = arguments;
    let cluster = cluster.options(namespace);
    let Answer { text, is_ready } = block_on(crownlabs::why(&instance, &cluster, output.output))?;
    print_in(output.output, &text)?;
    Ok(if exit_code && !is_ready { ExitCode::from(EXIT_FOUND) } else { ExitCode::SUCCESS })
}

/// Shows the Instances of a course, or the installation.
pub fn status(arguments: StatusArguments) -> anyhow::Result<ExitCode> {
    let StatusArguments { workspace, namespace, all, cluster, output } = arguments;
    let (cluster, format) = (cluster.options(namespace), output.output);
    let text = match workspace {
        Some(workspace) => block_on(crownlabs::status(&workspace, &cluster, format))?,
        None => block_on(crownlabs::installation(all, &cluster, format))?,
    };
    print_in(format, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the versions. The version of this program does not wait for the cluster.
pub fn version(arguments: VersionArguments) -> anyhow::Result<ExitCode> {
    let VersionArguments { version: _, kubeconfig, context } = arguments;
    print(&format!("crownlabs {VERSION}\n"))?;
    let cluster = ClusterOptions { kubeconfig, context, namespace: None };
    print(&block_on(crownlabs::cluster_versions(&cluster))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a text for people, with colours in a terminal, or a text in a format for programs.
fn print_in(format: Option<Format>, text: &str) -> anyhow::Result<()> {
    if format.is_none() { print_coloured(text) } else { print(text) }
}

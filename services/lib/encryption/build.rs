//! Compiles the protocol of KMS.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    const FOLDER: &str = "../../../proto";
    println!("cargo::rerun-if-changed={FOLDER}/kms");
    let files = protox::compile(["kms/v2.proto"], [FOLDER])?;
    tonic_prost_build::configure()
        .btree_map(".")
        .bytes(".")
        .compile_fds(files)?;
    Ok(())
}

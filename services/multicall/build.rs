//! Links the program at a fixed address. Its seventy thousand pointers would otherwise be relocated at the start of
//! each process, of which a container's shim is one, in a megabyte of memory of its own.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    // The images' programs are linked statically, which has flags of its own.
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

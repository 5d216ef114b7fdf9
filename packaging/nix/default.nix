# nix-build packaging/nix: the helper, the daemon and the admin's command, below one prefix.
{ pkgs ? import <nixpkgs> { } }:

pkgs.rustPlatform.buildRustPackage {
  pname = "nfsrahead";
  version = "0.1.0";
  src = ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ pkgs.pkg-config ];
  buildInputs = [ pkgs.systemdLibs ];

  buildPhase = "make all completions PREFIX=$out NOTIFY=notify-reload";
  installPhase = "make install PREFIX=$out NOTIFY=notify-reload";
  # The project's own check runs in a virtual machine.
  doCheck = false;

  meta = {
    description = "Readahead of NFS mounts from nfs.conf, and a daemon that watches them";
    license = pkgs.lib.licenses.gpl2Plus;
    platforms = pkgs.lib.platforms.linux;
  };
}

# nix-build packaging/nix: the helper, the daemon and the admin's command, below one prefix. For NixOS: services.udev.packages
# takes the rule, which names the helper by its path, and systemd.packages the unit.
{ pkgs ? import <nixpkgs> { } }:

pkgs.rustPlatform.buildRustPackage {
  pname = "nfsrahead";
  version = "0.1.0";
  src = ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ pkgs.pkg-config ];
  # The helper is static.
  buildInputs = [ pkgs.systemdLibs pkgs.glibc.static ];

  buildPhase = ''
    runHook preBuild
    make all completions SHELL=$SHELL PREFIX=$out NOTIFY=notify-reload
    runHook postBuild
  '';
  installPhase = ''
    runHook preInstall
    make install SHELL=$SHELL PREFIX=$out NOTIFY=notify-reload
    runHook postInstall
  '';
  # The project's own check runs in a virtual machine.
  doCheck = false;

  meta = {
    description = "Readahead of NFS mounts from nfs.conf, and a daemon that watches them";
    license = pkgs.lib.licenses.gpl2Plus;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "nfstune";
  };
}

// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fleet runs `make up`, `make member` and `make down`: a hub and members on this machine,
// and the main job on them. It is also the supervisor of what it started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "fleet: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	var o fleet.Options
	var asked settings
	flags.IntVar(&asked.count, "members", 0, "Number of members. If 0, the previous number, or two. No member is removed.")
	flags.Func("gateway-flags", "Further flags of the gateway, separated by spaces. If unset, the previous ones.", asked.GatewayFlags.set)
	flags.Func("agent-flags", "Further flags of the agents. If unset, the previous ones.", asked.AgentFlags.set)
	flags.BoolVar(&asked.OCM, "ocm", false, "Also serve Open Cluster Management's API: members are ManagedClusters too, and klusterlets can join. It stays enabled.")
	flags.StringVar(&o.Dir, "dir", "", "Folder of all processes and files. If unset, .fleetgate/up.")
	flags.IntVar(&o.Verbosity, "v", 0, "Verbosity of gateway and agents.")
	flags.StringVar(&o.GatewayPath, "gateway", "", "Gateway of another version. If unset, .fleetgate/bin/gateway.")
	flags.StringVar(&o.AgentPath, "agent", "", "Agent of another version. If unset, .fleetgate/bin/agent.")
	flags.StringVar(&o.HubBinDir, "hub-bin", "", "Folder with the hub's Kubernetes programs. If unset, .fleetgate/bin.")
	flags.StringVar(&o.MemberBinDir, "member-bin", "", "Folder with the members' Kubernetes programs. If unset, .fleetgate/bin.")
	flags.StringVar(&o.Tunnel, "tunnel", fleet.TunnelNative, "Path of the members' tunnels: native, port (native, directly to the gateway's own port for agents) or konnectivity.")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: fleet [flags] up|member NAME|down\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !slices.Contains([]string{fleet.TunnelNative, fleet.TunnelPort, fleet.TunnelKonnectivity}, o.Tunnel) {
		return fmt.Errorf("-tunnel %q is none of native, port and konnectivity", o.Tunnel)
	}
	if flags.Arg(0) == superviseCommand {
		return supervise(ctx, o.Dir) // The folder in o.Dir may be anywhere.
	}
	home, err := env.Home()
	if err != nil {
		return err
	}
	o.BinDir = filepath.Join(home, "bin")
	if o.Dir == "" {
		o.Dir = filepath.Join(home, "up")
	}
	switch flags.Arg(0) {
	case "up":
		return up(ctx, o, asked)
	case "member":
		return member(ctx, o, asked, flags.Arg(1))
	case "down":
		return down(ctx, o.Dir)
	default:
		flags.Usage()
		return errors.New("say up, member or down")
	}
}

// down stops every process with a record in the folder, the supervisor first, and removes the
// folder.
func down(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("Nothing runs: there is no", dir)
		return nil
	}
	guard, err := supervisorProcess(dir)
	if err != nil {
		return err
	}
	if err := guard.Kill(); err != nil {
		return err
	}
	processes, err := env.Processes(dir)
	if err != nil {
		return err
	}
	var failures []error
	for _, p := range processes {
		// The folder is removed, so the order of termination does not matter.
		failures = append(failures, p.Kill())
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Printf("Stopped %d processes and removed %s\n", len(processes), dir)
	return os.RemoveAll(dir)
}

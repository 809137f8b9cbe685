// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fleetgate.io/fleetgate/test/env"
	"fleetgate.io/fleetgate/test/fleet"
)

const (
	availableTimeout = 120 * time.Second
	tickEvery        = 10 * time.Second
)

// job is the main job, step by step. Each step can be done again.
type job struct {
	fleet *fleet.Fleet
	dir   string
}

// up makes the fleet run and does the main job on it, as often as it is called.
func up(ctx context.Context, o fleet.Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	begin := time.Now()
	o.Members, o.Detached, o.Progress = []string{"member-1", "member-2"}, true, progress()
	j := &job{dir: o.Dir}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"Starting a hub and two members", func(ctx context.Context) (err error) {
			fmt.Println("    Each is a real etcd, kube-apiserver and kube-controller-manager on loopback. Nodes and pods of the")
			fmt.Println("    members are simulated by KWOK: they look alive and run nothing.")
			j.fleet, err = fleet.Start(ctx, o)
			return err
		}},
		{"Waiting until both members have joined", j.waitJoined},
		{"Applying examples/", j.applyExamples},
		{"Waiting until the placements are Available", j.waitAvailable},
		{"Installing an add-on on member-1 with Helm, through the hub", j.installAddOn},
		{"Trying two changes that must be refused", j.tryRefused},
	}
	for _, s := range steps {
		if err := step(ctx, s.name, s.do); err != nil {
			return j.explain(s.name, err)
		}
	}
	if err := j.show(ctx); err != nil {
		return j.explain("Showing the result", err)
	}
	fmt.Printf("\nIt stays up in the background (%s in all). make down stops it.\n", time.Since(begin).Round(time.Second))
	return nil
}

// step says what is done, and how long it takes while it does.
func step(ctx context.Context, name string, do func(context.Context) error) error {
	fmt.Println("==>", name)
	begin := time.Now()
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case err := <-done:
			if err == nil {
				fmt.Printf("    done in %.1f s\n", time.Since(begin).Seconds())
			}
			return err
		case <-ticker.C:
			fmt.Printf("    ... %.0f s\n", time.Since(begin).Seconds())
		}
	}
}

// progress prints lines of several goroutines one at a time.
func progress() func(string) {
	var lock sync.Mutex
	return func(line string) {
		lock.Lock()
		defer lock.Unlock()
		fmt.Println("   ", line)
	}
}

// explain says what failed, and where the logs are.
func (j *job) explain(name string, err error) error {
	var start *env.StartError
	if errors.As(err, &start) {
		return fmt.Errorf("%s: %w", name, err) // It shows its log itself.
	}
	return fmt.Errorf("%s: %w\nThe logs are %s and those in the folders beside them", name, err, filepath.Join(j.dir, "*.log"))
}

func (j *job) hub(ctx context.Context, args ...string) (string, error) {
	return j.fleet.Kubectl(ctx, j.fleet.HubKubeconfig(), "", args...)
}

func (j *job) waitJoined(ctx context.Context) error {
	_, err := j.hub(ctx, "wait", "memberclusters", "--all", "--for=condition=Joined", "--timeout="+availableTimeout.String())
	return err
}

func (j *job) applyExamples(ctx context.Context) error {
	_, err := j.hub(ctx, "apply", "--filename="+j.fleet.Example(""))
	return err
}

func (j *job) waitAvailable(ctx context.Context) error {
	_, err := j.hub(ctx, "wait", "clusterresourceplacements", "admins", "shop",
		"--for=condition=ClusterResourcePlacementAvailable", "--timeout="+availableTimeout.String())
	return err
}

func (j *job) installAddOn(ctx context.Context) error {
	out, err := j.fleet.Run(ctx, "helm", "", "upgrade", "clock", j.fleet.Example("clock-addon"),
		"--kubeconfig="+j.fleet.MemberKubeconfig("member-1"), "--install", "--namespace=clock", "--create-namespace", "--wait", "--timeout=2m")
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	fmt.Println("   ", first)
	return nil
}

// refused are changes of the placement shop that nobody may make.
var refused = []struct{ what, patch string }{
	{"the placement's type", `[{"op": "replace", "path": "/spec/policy", "value": {"placementType": "PickFixed", "clusterNames": ["member-1"]}}]`},
	{"a toleration removed", `[{"op": "remove", "path": "/spec/policy/tolerations/0"}]`},
}

func (j *job) tryRefused(ctx context.Context) error {
	for _, change := range refused {
		_, err := j.hub(ctx, "patch", "clusterresourceplacement", "shop", "--type=json", "--patch="+change.patch)
		var refusal *fleet.CommandError
		if !errors.As(err, &refusal) {
			return fmt.Errorf("changing %s was not refused: %w", change.what, err)
		}
		fmt.Printf("    %s: %s\n", change.what, refusal.Stderr)
	}
	return nil
}

// show prints what the job came to.
func (j *job) show(ctx context.Context) error {
	const conditions = `{range .status.conditions[*]}{.type}{"\t"}{.status}{"\t"}{.reason}{"\n"}{end}`
	shown := []struct {
		title, kubeconfig string
		args              []string
	}{
		{"The members", j.fleet.HubKubeconfig(), []string{"get", "memberclusters"}},
		{"The placement shop", j.fleet.HubKubeconfig(), []string{"get", "clusterresourceplacement", "shop", "--output=jsonpath=" + conditions}},
		{"Deployments on member-1, through the hub", j.fleet.MemberKubeconfig("member-1"), []string{"get", "deployments", "--all-namespaces"}},
		{"Deployments on member-2, through the hub", j.fleet.MemberKubeconfig("member-2"), []string{"get", "deployments", "--all-namespaces"}},
	}
	for _, s := range shown {
		out, err := j.fleet.Kubectl(ctx, s.kubeconfig, "", s.args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n%s", s.title, indent(out))
	}
	fmt.Printf("\nKubeconfigs, of user admin in group fleetgate:admins\n")
	for _, path := range []string{j.fleet.HubKubeconfig(), j.fleet.MemberKubeconfig("member-1"), j.fleet.MemberKubeconfig("member-2")} {
		fmt.Println("   ", path)
	}
	fmt.Printf("\nTry next\n")
	for _, command := range j.suggestions() {
		fmt.Println("   ", command)
	}
	return nil
}

// suggestions are commands that work as they are printed.
func (j *job) suggestions() []string {
	kubectl := filepath.Join(j.fleet.BinDir, "kubectl")
	hub, member := "--kubeconfig="+j.fleet.HubKubeconfig(), "--kubeconfig="+j.fleet.MemberKubeconfig("member-2")
	return []string{
		kubectl + " " + hub + " get clustergateways",
		kubectl + " " + member + " --namespace=shop get configmap web --output=yaml",
		kubectl + " " + hub + ` --namespace=shop patch configmap web --type=merge --patch='{"data":{"greeting":"Hello"}}'`,
	}
}

// indent sets a text off, in aligned columns where it has tabs.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cells) == 3 {
			fmt.Fprintf(&b, "    %-46s %-8s %s\n", cells[0], cells[1], cells[2])
			continue
		}
		b.WriteString("    " + strings.Join(cells, " ") + "\n")
	}
	return b.String()
}

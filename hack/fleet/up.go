// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
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
func up(ctx context.Context, o fleet.Options, asked settings) error {
	if err := prepare(&o, asked); err != nil {
		return err
	}
	begin := time.Now()
	j := &job{dir: o.Dir}
	steps := []part{
		{fmt.Sprintf("Starting a hub and %d members", len(o.Members)), j.start(o)},
		{"Waiting until the members have joined and respond through the hub", j.waitJoined},
		{"Applying the missing manifests of examples/", j.applyExamples},
		{"Waiting until the placements are Available", j.waitAvailable},
		{"Installing an add-on on member-1 with Helm, through the hub", j.installAddOn},
		{"Trying two changes that must be rejected", j.tryRefused},
	}
	if err := j.run(ctx, steps); err != nil {
		return err
	}
	if err := j.show(ctx); err != nil {
		return j.explain("Showing the result", err)
	}
	fmt.Printf("\nThe fleet runs in the background and restarts what fails (started in %s). make down stops it.\n", time.Since(begin).Round(time.Second))
	return nil
}

// member adds a member to the fleet that runs, and starts what of it does not.
func member(ctx context.Context, o fleet.Options, asked settings, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := prepare(&o, asked, name); err != nil {
		return err
	}
	j := &job{dir: o.Dir}
	if err := j.run(ctx, []part{
		{"Starting " + name, j.start(o)},
		{"Waiting until it has joined and responds through the hub", j.waitJoined},
	}); err != nil {
		return err
	}
	fmt.Println("Kubeconfig of user admin in group fleetgate:admins, through the hub:", j.fleet.MemberKubeconfig(name))
	return nil
}

// part is a step with what it is called.
type part struct {
	name string
	do   func(context.Context) error
}

func (j *job) run(ctx context.Context, parts []part) error {
	for _, p := range parts {
		if err := step(ctx, p.name, p.do); err != nil {
			return j.explain(p.name, err)
		}
	}
	return nil
}

func (j *job) start(o fleet.Options) func(context.Context) error {
	return func(ctx context.Context) error {
		fmt.Println("    Each is a real etcd, kube-apiserver and kube-controller-manager on loopback. Nodes and pods of the")
		fmt.Println("    members are simulated by KWOK: they look real and run nothing.")
		// Nobody else starts anything meanwhile.
		guard, err := supervisorProcess(o.Dir)
		if err != nil {
			return err
		}
		if err := guard.Stop(ctx); err != nil {
			return err
		}
		j.fleet, err = fleet.Start(ctx, o)
		return errors.Join(err, guard.Start(ctx))
	}
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

// waitJoined also waits for the tunnels: what comes next goes through the hub.
func (j *job) waitJoined(ctx context.Context) error {
	if _, err := j.hub(ctx, "wait", "memberclusters", "--all", "--for=condition=Joined", "--timeout="+availableTimeout.String()); err != nil {
		return err
	}
	if err := j.waitShown(ctx); err != nil {
		return err
	}
	return j.fleet.AwaitAnswers(ctx, availableTimeout)
}

// waitShown waits until the members are ManagedClusters too, where that was asked for.
func (j *job) waitShown(ctx context.Context) error {
	if !j.fleet.OCM {
		return nil
	}
	wait := []string{"wait", "managedclusters", "--timeout=" + availableTimeout.String()}
	for _, m := range j.fleet.Members {
		wait = append(wait, m.Name)
	}
	for _, until := range []string{"create", "condition=ManagedClusterConditionAvailable"} {
		if _, err := j.hub(ctx, append(wait, "--for="+until)...); err != nil {
			return err
		}
	}
	return nil
}

// applyExamples makes what is not there: what people have changed since stays as it is.
func (j *job) applyExamples(ctx context.Context) error {
	_, err := j.hub(ctx, "create", "--filename="+j.fleet.Example(""), "--save-config")
	var refused *fleet.CommandError
	if !errors.As(err, &refused) {
		return err
	}
	for line := range strings.Lines(refused.Stderr) {
		if !strings.Contains(line, "(AlreadyExists)") {
			return err
		}
	}
	return nil
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
			return fmt.Errorf("changing %s was not rejected: %w", change.what, err)
		}
		fmt.Printf("    %s: %s\n", change.what, refusal.Stderr)
	}
	return nil
}

// show prints what the job came to.
func (j *job) show(ctx context.Context) error {
	const conditions = `{range .status.conditions[*]}{.type}{"\t"}{.status}{"\t"}{.reason}{"\n"}{end}`
	type table struct {
		title, kubeconfig string
		args              []string
	}
	shown := []table{{"The members", j.fleet.HubKubeconfig(), []string{"get", "memberclusters"}}}
	if j.fleet.OCM {
		shown = append(shown, table{"The same members as ManagedClusters", j.fleet.HubKubeconfig(), []string{"get", "managedclusters"}})
	}
	shown = append(shown,
		table{"The placement shop", j.fleet.HubKubeconfig(), []string{"get", "clusterresourceplacement", "shop", "--output=jsonpath=" + conditions}})
	kubeconfigs := []string{j.fleet.HubKubeconfig()}
	for _, m := range j.fleet.Members {
		kubeconfig := j.fleet.MemberKubeconfig(m.Name)
		shown = append(shown, table{fmt.Sprintf("Deployments on %s, through the hub", m.Name), kubeconfig, []string{"get", "deployments", "--all-namespaces"}})
		kubeconfigs = append(kubeconfigs, kubeconfig)
	}
	shown = append(shown, table{"Deployments on all members, in one request through the hub", j.fleet.FleetKubeconfig(), []string{"get", "deployments", "--all-namespaces"}})
	kubeconfigs = append(kubeconfigs, j.fleet.FleetKubeconfig())
	for _, s := range shown {
		out, err := j.fleet.Kubectl(ctx, s.kubeconfig, "", s.args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n%s", s.title, indent(out))
	}
	fmt.Printf("\nKubeconfigs of user admin in group fleetgate:admins\n")
	for _, path := range kubeconfigs {
		fmt.Println("   ", path)
	}
	fmt.Printf("\nTry next\n")
	for _, command := range j.suggestions() {
		fmt.Println("   ", command)
	}
	fmt.Printf("\nLook at it in a browser\n")
	fmt.Println("   ", filepath.Join(j.fleet.BinDir, "kubectl-fleetgate"), "--kubeconfig="+j.fleet.HubKubeconfig(), "console")
	return nil
}

// suggestions are commands that work as they are printed.
func (j *job) suggestions() []string {
	kubectl := filepath.Join(j.fleet.BinDir, "kubectl")
	plugin := filepath.Join(j.fleet.BinDir, "kubectl-fleetgate")
	another := j.fleet.Members[min(1, len(j.fleet.Members)-1)].Name // The second, if there is one.
	hub, member := "--kubeconfig="+j.fleet.HubKubeconfig(), "--kubeconfig="+j.fleet.MemberKubeconfig(another)
	return []string{
		plugin + " " + hub + " members",
		plugin + " " + hub + " tree shop",
		kubectl + " " + hub + " get clustergateways",
		kubectl + " --kubeconfig=" + j.fleet.FleetKubeconfig() + " get pods --all-namespaces --output=wide",
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

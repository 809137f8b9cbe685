// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports holds the arrows between packages: which may import which is
// a table in docs/architecture.md, and this is the test of it.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const module = "fleetgate.io/fleetgate/"

// An arrow that must not exist. From and to are import paths, or parents of them.
type forbidden struct {
	from, to string
	// except lists packages below `to` that may be imported all the same.
	except []string
	// through says that the whole dependency tree is meant, not only direct imports.
	through bool
	reason  string
}

var table = []forbidden{
	{from: module + "pkg/apis", to: module, except: []string{module + "pkg/apis"},
		reason: "types are what everybody builds on: they know nothing of who uses them"},
	{from: module + "pkg/placement/framework", to: module, except: []string{module + "pkg/placement/framework"},
		reason: "a decision is a function of a snapshot in types of its own: every family of APIs can have it, and people without a cluster"},
	{from: module + "pkg/placement/framework", to: "k8s.io/client-go",
		reason: "no client in a scheduling cycle"},
	{from: module + "pkg/placement/framework", to: "sigs.k8s.io/controller-runtime",
		reason: "no client in a scheduling cycle"},
	{from: module + "pkg/placement/framework", to: "k8s.io/utils/clock",
		reason: "no clock in a scheduling cycle: time is part of the snapshot"},
	{from: module + "pkg/placement/plugins", to: module, except: []string{module + "pkg/placement/framework", module + "pkg/placement/plugins", module + "pkg/kube/untrusted"},
		reason: "a rule is a pure function over the framework's snapshot, whichever family of APIs it was made from"},
	{from: module + "pkg/placement/plugins", to: "k8s.io/client-go",
		reason: "no client in a scheduling cycle"},
	{from: module + "pkg/placement/ocm/rolloutstrategy", to: module,
		reason: "a rollout strategy is a function of values, shared by all who roll something out over decision groups"},
	{from: module + "pkg/placement/ocm/rolloutstrategy", to: "k8s.io/client-go",
		reason: "no client in a strategy"},
	{from: module + "pkg/placement/ocm/rolloutstrategy", to: "sigs.k8s.io/controller-runtime",
		reason: "no client in a strategy"},
	{from: module + "pkg/placement/ocm/rolloutstrategy", to: "k8s.io/utils/clock",
		reason: "no clock in a strategy: time is handed in"},
	{from: module + "pkg/addon", to: module, except: []string{module + "pkg/addon", module + "pkg/apis", module + "pkg/controller", module + "pkg/kube", module + "pkg/placement/ocm/decisions", module + "pkg/placement/ocm/rolloutstrategy"},
		reason: "add-ons read clusters, decisions and works as API objects; what else they need is handed in"},
	{from: module + "pkg/cluster/hub/membership", to: module, except: []string{module + "pkg/apis/cluster", module + "pkg/cluster/hub/identity", module + "pkg/controller/enqueue", module + "pkg/controller/refusal", module + "pkg/controller/reconcileutil", module + "pkg/kube/untrusted"},
		reason: "members are the fleet's inventory: what they are given to do belongs to families of APIs, and is handed in as kinds"},
	{from: module + "pkg/tunnel", to: module, except: []string{module + "pkg/tunnel"},
		reason: "the tunnel carries bytes and knows nothing of what they mean"},
	{from: module + "pkg/tunnel", to: "sigs.k8s.io/controller-runtime",
		reason: "the tunnel is a network library, usable without a manager"},
	{from: module + "pkg/tunnel", to: "k8s.io/apiserver", through: true,
		reason: "the agent contains the tunnel and must stay small"},
	{from: module + "pkg/apiserver", to: module, except: []string{module + "pkg/apis", module + "pkg/apiserver", module + "pkg/kube/untrusted"},
		reason: "the proxy declares the one-method interfaces that it needs; features are handed in"},
	{from: module + "pkg/placement", to: module + "pkg/work/agent/apply", through: true,
		reason: "the hub's half and the member's half meet in the Work only"},
	{from: module + "pkg/work", to: module + "pkg/placement", through: true,
		reason: "works are applied the same way for every source: placements know works, not the reverse"},
	{from: module + "pkg/work/engine", to: module, except: []string{module + "pkg/work/engine", module + "pkg/work/manifest", module + "pkg/kube/hash", module + "pkg/kube/metainformer", module + "pkg/kube/boundedcel", module + "pkg/kube/untrusted", module + "pkg/controller/refusal"}, through: true,
		reason: "it applies objects for works of every family, and knows the types of none"},
	{from: module + "cmd/agent", to: "k8s.io/apiserver", through: true,
		// Condition rules of ManifestWorks have Kubernetes' functions in CEL, which need these.
		except: []string{"k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/apis/cel", "k8s.io/apiserver/pkg/authorization/authorizer",
			"k8s.io/apiserver/pkg/authentication/user", "k8s.io/apiserver/pkg/authentication/serviceaccount"},
		reason: "the agent runs on every member: a whole API server in it is weight and attack surface"},
	{from: module + "cmd/agent", to: module + "pkg/apiserver", through: true,
		reason: "the proxy belongs to the hub"},
	{from: module + "cmd/agent", to: module + "pkg/placement", through: true,
		reason: "placement is decided on the hub"},
	{from: module + "cmd/agent", to: module + "pkg/webhook", through: true,
		reason: "admission belongs to the hub"},
	{from: module + "cmd/agent", to: module + "pkg/cluster/hub", through: true,
		reason: "who is let in is decided on the hub"},
	{from: module + "cmd/agent", to: module + "pkg/addon/hub", through: true,
		reason: "who gets an add-on is decided on the hub"},
	{from: module + "cmd/agent", to: module + "pkg/inspect", through: true,
		reason: "a fleet is read as a person, on the hub"},
	{from: module + "pkg/kube", to: module, except: []string{module + "pkg/kube"},
		reason: "plumbing of clients knows no domain"},
	{from: module + "pkg/controller", to: module, except: []string{module + "pkg/controller"},
		reason: "what all reconcilers need knows no domain"},
	{from: module + "cmd/kubectl-fleetgate", to: "k8s.io/apiserver", through: true,
		except: []string{"k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/apis/cel", "k8s.io/apiserver/pkg/authorization/authorizer",
			"k8s.io/apiserver/pkg/authentication/user", "k8s.io/apiserver/pkg/authentication/serviceaccount"},
		reason: "the plugin runs on people's machines: it links no API server"},
	{from: module + "pkg/cluster/hub/ocm/managedcluster", to: module, except: []string{module + "pkg/apis/ocm/cluster", module + "pkg/cluster/hub/ocm/managedcluster", module + "pkg/controller/refusal", module + "pkg/controller/reconcileutil"},
		reason: "a cluster comes and goes the same way whatever its agent is"},
	{from: module + "cmd/agent", to: "github.com/cert-manager/cert-manager", through: true,
		reason: "the agent serves no certificate"},
	{from: module + "cmd/agent", to: "helm.sh", through: true,
		reason: "charts are rendered on the hub"},
	{from: module + "pkg/placement/dispatch", to: "helm.sh", through: true,
		reason: "Helm stays in one package, which runs in a process of its own"},
	{from: module + "pkg/webhook", to: "helm.sh", through: true,
		reason: "Helm stays in one package, which runs in a process of its own"},
	{from: module + "cmd", to: module + "test", through: true,
		reason: "test code does not ship"},
	{from: module + "pkg", to: module + "test", through: true,
		reason: "test code does not ship"},
	{from: module + "pkg", to: module + "cmd", through: true,
		reason: "packages receive values; only commands read flags"},
	{from: module + "pkg", to: "github.com/onsi", through: true,
		reason: "test code does not ship"},
	{from: module + "pkg", to: "github.com/chromedp", through: true,
		reason: "test code does not ship"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestNoForbiddenArrow(t *testing.T) {
	packages := listPackages(t)
	for _, row := range table {
		if row.reason == "" {
			t.Errorf("%s -> %s: a forbidden arrow needs its reason", row.from, row.to)
		}
		for _, p := range packages {
			if !below(p.ImportPath, row.from) {
				continue
			}
			targets := p.Imports
			if row.through {
				targets = p.Deps
			}
			for _, target := range targets {
				if below(target, row.to) && !belowAny(target, row.except) {
					t.Errorf("%s must not import %s: %s", p.ImportPath, target, row.reason)
				}
			}
		}
	}
}

// An empty list would make the table pass without looking at anything.
func TestTableSeesThePackages(t *testing.T) {
	packages := listPackages(t)
	for _, row := range table {
		found := false
		for _, p := range packages {
			found = found || below(p.ImportPath, row.from)
		}
		if !found {
			t.Errorf("no package is below %s: the row checks nothing", row.from)
		}
	}
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	packages, err := packagesOnce()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// packagesOnce lists the packages for all tests: the list takes seconds.
var packagesOnce = sync.OnceValues(func() ([]listed, error) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"cmd/...", module+"pkg/...")
	out, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("listing packages: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
})

// below reports whether path is parent or lies under it.
func below(path, parent string) bool {
	return path == strings.TrimSuffix(parent, "/") || strings.HasPrefix(path, strings.TrimSuffix(parent, "/")+"/")
}

func belowAny(path string, parents []string) bool {
	for _, parent := range parents {
		if below(path, parent) {
			return true
		}
	}
	return false
}

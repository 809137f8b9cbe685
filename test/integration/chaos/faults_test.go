// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/faults"
	"fleetgate.io/fleetgate/test/support/program"
)

// ways are the connections of gateway and agents to the hub, in which specs inject faults.
var ways program.FaultyWays

// The faults that last until they are ended.
const (
	conversionDown = "the conversion webhook of the hub's Widgets is unavailable"
	aggregatedDown = "an aggregated API is unavailable on "
	admissionDown  = "an admission webhook is unavailable on "
	frozen         = "the API server is frozen on "
	slow           = "requests to the hub are slow, rejected, and lose their watches"
)

// hurt lets something fail: at once, or until end.
func (c *chaos) hurt(ctx context.Context) {
	GinkgoHelper()
	at := running.Members[c.dice.IntN(len(running.Members))]
	clusters := running.Clusters()
	any := clusters[c.dice.IntN(len(clusters))]
	switch c.dice.IntN(11) {
	case 0, 1:
		c.note("killed the gateway")
		Expect(running.Gateway.Kill()).To(Succeed())
		c.start(ctx, running.Gateway)
	case 2, 3:
		c.note("killed the agent of " + at.Name)
		Expect(at.Agent.Kill()).To(Succeed())
		c.start(ctx, at.Agent)
	case 4:
		c.note("killed the API server of " + any.Name)
		c.end(ctx, frozen+any.Name)
		Expect(any.APIServer.Kill()).To(Succeed())
		Expect(any.APIServer.Start(ctx)).To(Succeed())
	case 5:
		c.freezeHub(ctx)
	case 6:
		c.begin(ctx, frozen+at.Name, at.Cluster)
	case 7:
		c.begin(ctx, aggregatedDown+any.Name, any)
	case 8:
		c.begin(ctx, admissionDown+any.Name, any)
	case 9:
		c.begin(ctx, conversionDown, running.Hub)
	default:
		c.begin(ctx, slow, running.Hub)
	}
}

// freezeHub freezes the hub's API server for as long as a short outage.
func (c *chaos) freezeHub(ctx context.Context) {
	GinkgoHelper()
	lasts := time.Duration(1+c.dice.IntN(4)) * time.Second
	c.note(fmt.Sprintf("froze the hub's API server for %s", lasts))
	Expect(running.Hub.APIServer.Freeze()).To(Succeed())
	select {
	case <-ctx.Done():
	case <-time.After(lasts):
	}
	Expect(running.Hub.APIServer.Thaw()).To(Succeed())
}

// begin starts a fault that lasts, unless it does already.
func (c *chaos) begin(ctx context.Context, what string, at *env.Cluster) {
	GinkgoHelper()
	if _, already := c.wrong[what]; already {
		return
	}
	switch {
	case what == slow:
		for _, way := range ways {
			way.Set(faults.Faults{Delay: 300 * time.Millisecond, RefuseEvery: 10, WatchesLast: 5 * time.Second})
		}
	case what == frozen+at.Name:
		Expect(at.APIServer.Freeze()).To(Succeed())
	default:
		c.end(ctx, frozen+at.Name)
		c.apply(ctx, at, what)
	}
	c.wrong[what] = at
	c.note("begins: " + what)
}

// end ends a fault, if it lasts.
func (c *chaos) end(ctx context.Context, what string) {
	GinkgoHelper()
	at, lasts := c.wrong[what]
	if !lasts {
		return
	}
	switch what {
	case slow:
		for _, way := range ways {
			way.Set(faults.Faults{})
		}
	case frozen + at.Name:
		Expect(at.APIServer.Thaw()).To(Succeed())
	default:
		c.end(ctx, frozen+at.Name)
		c.restore(ctx, at, what)
	}
	delete(c.wrong, what)
	c.note("ends: " + what)
}

// endAll ends all faults and starts what has ended.
func (c *chaos) endAll(ctx context.Context) {
	GinkgoHelper()
	for _, what := range slices.Sorted(maps.Keys(c.wrong)) {
		c.end(ctx, what)
	}
	c.revive(ctx)
}

// revive starts gateway and agents that have ended by themselves, as Kubernetes does.
func (c *chaos) revive(ctx context.Context) {
	GinkgoHelper()
	for _, process := range []*env.Process{running.Gateway, running.Members[0].Agent, running.Members[1].Agent} {
		if !process.Running() {
			c.note(process.Name() + " had ended")
			c.start(ctx, process)
		}
	}
}

// start starts a gateway or an agent. What keeps it from being ready may be the fault itself.
func (c *chaos) start(ctx context.Context, process *env.Process) {
	GinkgoHelper()
	for what, at := range c.wrong {
		if what == slow || what == frozen+at.Name {
			c.end(ctx, what)
		}
	}
	retry(ctx, func(ctx context.Context) error {
		if process.Running() {
			return nil
		}
		return process.Start(ctx)
	})
}

// apply makes a fault with objects on a cluster.
func (c *chaos) apply(ctx context.Context, at *env.Cluster, what string) {
	GinkgoHelper()
	switch what {
	case conversionDown:
		kubectl(ctx, at, "", "patch", "crd", "widgets.chaos.example.org", "--type=merge", "--patch",
			`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"default","name":"nobody"}}}}}}`)
	case aggregatedDown + at.Name:
		kubectl(ctx, at, aggregatedAPI, "apply", "--filename=-")
	case admissionDown + at.Name:
		rules := `{apiGroups: [""], apiVersions: ["*"], resources: [configmaps, secrets, namespaces], operations: ["*"]}`
		if at == running.Hub {
			rules = `{apiGroups: [placement.kubernetes-fleet.io], apiVersions: ["*"], resources: [works, clusterresourcebindings, resourcebindings], operations: ["*"]}`
		}
		kubectl(ctx, at, fmt.Sprintf(admissionWebhook, rules), "apply", "--filename=-")
	}
}

// restore removes the objects of a fault.
func (c *chaos) restore(ctx context.Context, at *env.Cluster, what string) {
	GinkgoHelper()
	switch what {
	case conversionDown:
		kubectl(ctx, at, "", "patch", "crd", "widgets.chaos.example.org", "--type=json", "--patch", `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	case aggregatedDown + at.Name:
		kubectl(ctx, at, "", "delete", "apiservice", "v1.down.chaos.example.org", "--ignore-not-found")
	case admissionDown + at.Name:
		kubectl(ctx, at, "", "delete", "validatingwebhookconfiguration", "down.chaos.example.org", "--ignore-not-found")
	}
}

func kubectl(ctx context.Context, at *env.Cluster, input string, args ...string) {
	GinkgoHelper()
	retry(ctx, func(ctx context.Context) error {
		out, err := program.Kubectl(ctx, at, input, args...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

const aggregatedAPI = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.chaos.example.org}
spec:
  group: down.chaos.example.org
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nobody}
`

const admissionWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: down.chaos.example.org}
webhooks:
- name: down.chaos.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {service: {namespace: default, name: nobody}}
  rules: [%s]
`

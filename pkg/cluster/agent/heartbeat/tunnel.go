// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// tunnelSettles is how long a change of the tunnel must last to be reported early: short
	// changes are not worth a write on the hub.
	tunnelSettles = 5 * time.Second
	// maxTunnelReason limits the reason for a missing tunnel, in bytes.
	maxTunnelReason = 512
)

// Tunnel is the reported state of the agent's tunnel. Its methods can be called from any goroutine.
type Tunnel struct {
	clock   clock.WithDelayedExecution
	changed wakes

	// mu guards the fields below it.
	mu sync.Mutex
	// shown is nil until the state is known.
	shown *metav1.Condition
	// byNamespace is set once a tunnel was opened by the right in the member's namespace.
	byNamespace bool
	timer       clock.Timer
}

// NewTunnel returns a Tunnel with unknown state.
func NewTunnel(clock clock.WithDelayedExecution) *Tunnel {
	return &Tunnel{clock: clock, changed: make(wakes, 1)}
}

// Up reports a connected tunnel. reason is one of clusterv1beta1.ReasonTunnel* and names its path.
func (t *Tunnel) Up(reason string) {
	t.set(metav1.Condition{Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionTrue, Reason: reason, Message: tunnelWays()[reason]})
}

// Down reports that there is no tunnel, and why. A change of the text alone waits for the next
// heartbeat.
func (t *Tunnel) Down(err error) {
	message := "the agent has no tunnel"
	if err != nil {
		message += ": " + err.Error()
	}
	t.set(metav1.Condition{
		Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionFalse,
		Reason: clusterv1beta1.ReasonTunnelDown, Message: untrusted.Truncate(message, maxTunnelReason),
	})
}

// Forget resets the state to unknown, after the agent stopped the tunnel.
func (t *Tunnel) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown, t.byNamespace = nil, false
	if t.timer != nil {
		t.timer.Stop()
	}
}

func tunnelWays() map[string]string {
	return map[string]string{
		clusterv1beta1.ReasonTunnelViaHub:          "the tunnel goes through the hub's API server",
		clusterv1beta1.ReasonTunnelViaPort:         "the tunnel goes directly to the gateway's own port",
		clusterv1beta1.ReasonTunnelViaKonnectivity: "the tunnel uses Konnectivity's protocol, directly to its server",
	}
}

func (t *Tunnel) set(condition metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.shown
	t.shown = &condition
	if before != nil && before.Reason == condition.Reason {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = t.clock.AfterFunc(tunnelSettles, t.changed.wake)
}

// ByNamespace reports that a tunnel was opened by the right in the member's namespace on the hub,
// so that no other right is needed.
func (t *Tunnel) ByNamespace() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byNamespace = true
}

// right returns the right that opens the tunnel; empty without a Tunnel.
func (t *Tunnel) right() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byNamespace {
		return clusterv1beta1.TunnelRightNamespace
	}
	return clusterv1beta1.TunnelRightEither
}

// condition returns the condition to report, or nil.
func (t *Tunnel) condition() *metav1.Condition {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.DeepCopy()
}

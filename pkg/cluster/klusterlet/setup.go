// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"fleetgate.io/fleetgate/pkg/cluster/managed"
)

// Options say how klusterlets are served.
type Options struct {
	// Users are those whose clusters are admitted, and accepted, without asking anybody.
	Users []string
	// Signer signs; nil leaves that to the hub's controller manager.
	Signer *Signer
	// ForceDeleteWait is how long the agent of a deleted cluster may clean up; zero is 15
	// minutes.
	ForceDeleteWait time.Duration
	// Workers is how many clusters each controller looks at at a time.
	Workers int
}

// SetupWithManager adds all that lets clusters with klusterlets join and leave.
func SetupWithManager(config *rest.Config, mgr ctrl.Manager, o Options) error {
	objects, err := managed.NewCache(config, cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	if err := mgr.Add(objects); err != nil {
		return err
	}
	hub, now := mgr.GetClient(), clock.RealClock{}
	for _, add := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&managed.Reconciler{
			Client: hub, Live: mgr.GetAPIReader(), Objects: objects, Recorder: mgr.GetEventRecorder(managed.Name), Clock: now,
			ForceDeleteWait: o.ForceDeleteWait, Workers: o.Workers,
		},
		&Approver{
			Client: hub, Requests: objects, Recorder: mgr.GetEventRecorder(ApproverName), Clock: now,
			Users: o.Users, Signer: o.Signer, Workers: o.Workers,
		},
		&LivenessReconciler{Client: hub, Leases: objects, Recorder: mgr.GetEventRecorder(LivenessName), Clock: now, Workers: o.Workers},
	} {
		if err := add.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubevents

import (
	"context"
	"fmt"

	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Manager is a manager whose recorders use the event names that the hub accepts from members.
type Manager struct {
	ctrl.Manager
	broadcaster events.EventBroadcaster
}

// Of returns a Manager. Its recorders write while it runs.
func Of(hub ctrl.Manager) (*Manager, error) {
	writer, err := typedeventsv1.NewForConfigAndClient(hub.GetConfig(), hub.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client for events: %w", err)
	}
	m := &Manager{Manager: hub, broadcaster: events.NewBroadcaster(newSink(&events.EventSinkImpl{Interface: writer}))}
	return m, hub.Add(manager.RunnableFunc(m.record))
}

// GetEventRecorder returns a recorder for a controller.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	made := m.broadcaster.NewRecorder(m.GetScheme(), name)
	annotating, _ := made.(events.AnnotatedEventRecorder) // recorders of a broadcaster implement both
	return both{made, annotating}
}

type both struct {
	events.EventRecorder
	events.AnnotatedEventRecorder
}

func (m *Manager) record(ctx context.Context) error {
	if err := m.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	<-ctx.Done()
	m.broadcaster.Shutdown()
	return nil
}

// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

const (
	// simulatorVariable makes this program a simulator of members instead of a benchmark. It is the
	// path of the registration token's values.
	simulatorVariable = "FLEETGATE_SIMULATOR"
	// membersOfSimulator is the number of members that fit into a process with 20,000 descriptors:
	// each member has two connections, and two more for a moment while it joins.
	membersOfSimulator = 3400
)

func TestMain(m *testing.M) {
	var err error
	switch values, gateway := os.Getenv(simulatorVariable), os.Getenv(farEndVariable); {
	case values != "":
		err = simulate(values, os.Stdin, os.Stdout)
	case gateway != "":
		err = serveFarEnd(gateway, os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "a process of the benchmark: %v\n", err)
		os.Exit(1)
	}
}

// simulatorCounts are the reports of a simulator, one JSON line each.
type simulatorCounts struct {
	// Connected is the number of tunnels, Settled the number of Works that were reported as applied
	// and available.
	Connected, Settled int
}

// simulator runs many members in its own process.
type simulator struct {
	crowd              *crowd
	connected, settled atomic.Int64
}

// simulate joins the members whose names it reads, one per line, until the input ends.
func simulate(path string, names io.Reader, out io.Writer) error {
	ctrl.SetLogger(klog.Background())
	values, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	s := &simulator{}
	if s.crowd, err = newCrowd(values); err != nil {
		return err
	}
	defer s.crowd.close()
	s.crowd.besides = s.serve
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.crowd.running.Go(func() { s.tell(ctx, out) })
	start := s.crowd.starter(ctx)
	lines := bufio.NewScanner(names)
	for lines.Scan() {
		if err := start(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// tell writes the counts after every change.
func (s *simulator) tell(ctx context.Context, out io.Writer) {
	const interval = 20 * time.Millisecond
	told := simulatorCounts{Connected: -1}
	for lines := json.NewEncoder(out); ; {
		if now := (simulatorCounts{Connected: int(s.connected.Load()), Settled: int(s.settled.Load())}); now != told {
			if err := lines.Encode(now); err != nil {
				return // The reader is gone.
			}
			told = now
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// serve is an agent's work in addition to reporting: it keeps a tunnel, and reports each Work as
// applied and available.
func (s *simulator) serve(ctx context.Context, agent crowdAgent) {
	statuses := newAgents(agent.hub)
	see(ctx, &s.crowd.running, agent.hub, metadataOf(placementv1beta1.GroupVersion.WithKind("WorkList")), func(object client.Object) {
		work, ok := object.(*metav1.PartialObjectMetadata)
		if !ok || !statuses.notice(work) {
			return
		}
		if err := statuses.settle(ctx, work); err != nil {
			klog.Infof("The benchmark cannot report on a Work: %v", err)
			return
		}
		s.settled.Add(1)
	}, client.InNamespace(clusterv1beta1.MemberNamespace(agent.member)))

	connector, err := s.connector(agent)
	if err == nil {
		err = connector.Run(ctx)
	}
	if err != nil {
		panic(err) // This is a bug of the simulator.
	}
}

// connector is the agent's end of its tunnel, through the hub first and then at the port that the
// gateway announces.
func (s *simulator) connector(agent crowdAgent) (*tunnel.Connector, error) {
	secured, err := rest.TLSConfigFor(agent.config)
	if err != nil {
		return nil, err
	}
	hub, err := kubernetes.NewForConfig(agent.config)
	if err != nil {
		return nil, err
	}
	namespace := clusterv1beta1.MemberNamespace(agent.member)
	var up bool
	return &tunnel.Connector{
		Member: agent.member,
		Dial: (&tunnel.HubDialer{
			URL: agent.config.Host + tunnelv1alpha1.PathOf(agent.member, namespace), TLS: secured, Token: agent.token,
		}).Dial,
		Direct: func(ctx context.Context, port tunnel.PortInfo) (net.Conn, error) {
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM([]byte(port.CA)) {
				return nil, errors.New("the gateway sent no CA")
			}
			return (&tunnel.HubDialer{
				URL:   "https://" + port.Address + tunnelv1alpha1.PathOf(agent.member, ""),
				TLS:   &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: port.ServerName},
				Token: func(ctx context.Context) (string, error) { return tunnelToken(ctx, hub, namespace) },
			}).Dial(ctx)
		},
		Targets: map[string]tunnel.Target{},
		OnStateChange: func(state tunnel.State) {
			if state.Connected == up {
				return
			}
			if up = state.Connected; up {
				s.connected.Add(1)
			} else {
				s.connected.Add(-1)
			}
		},
	}, nil
}

// tunnelToken is valid for the gateway's own port only.
func tunnelToken(ctx context.Context, hub kubernetes.Interface, namespace string) (string, error) {
	seconds := int64((10 * time.Minute).Seconds())
	answer, err := hub.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, clusterv1beta1.AgentAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{tunnelv1alpha1.TokenAudience}, ExpirationSeconds: &seconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: clusterv1beta1.AgentCredentialSecret},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// simulatorProcess is a running simulator.
type simulatorProcess struct {
	names io.WriteCloser
	told  atomic.Pointer[simulatorCounts]
	pid   int
}

// startSimulator starts one that ends with the benchmark and writes a log.
func startSimulator(b *testing.B, values, log string) *simulatorProcess {
	b.Helper()
	file, err := os.Create(log)
	if err != nil {
		b.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), simulatorVariable+"="+values)
	command.Stderr = file
	s := &simulatorProcess{}
	names, namesErr := command.StdinPipe()
	counts, countsErr := command.StdoutPipe()
	if err := errors.Join(namesErr, countsErr, command.Start(), file.Close()); err != nil {
		b.Fatal(err)
	}
	s.names, s.pid = names, command.Process.Pid
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := json.NewDecoder(counts); ; {
			var now simulatorCounts
			if err := lines.Decode(&now); err != nil {
				return // The process has ended; the error is reported below.
			}
			s.told.Store(&now)
		}
	}()
	b.Cleanup(func() {
		_ = names.Close()
		<-read
		if err := command.Wait(); err != nil {
			b.Errorf("a simulator, whose log is %s: %v", log, err)
		}
	})
	return s
}

// join starts one more member.
func (s *simulatorProcess) join(name string) error {
	_, err := fmt.Fprintln(s.names, name)
	return err
}

// counts returns its latest report.
func (s *simulatorProcess) counts() simulatorCounts {
	if told := s.told.Load(); told != nil {
		return *told
	}
	return simulatorCounts{}
}

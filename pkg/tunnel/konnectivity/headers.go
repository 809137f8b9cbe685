// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"fmt"
	"net/url"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// The metadata of AgentService.Connect, as gRPC spells names.
const (
	headerAgentID          = "agentid"
	headerAgentIdentifiers = "agentidentifiers"
	headerServerID         = "serverid"
	headerServerCount      = "servercount"
	headerAuthorization    = "authorization"
	// headerExtensions is ours: an agent sends the version of our packets that it supports, the
	// gateway confirms it.
	headerExtensions = "fleetgate-extensions"
	extensions       = "1"
)

const (
	methodConnect = "/AgentService/Connect"
	methodProxy   = "/ProxyService/Proxy"
)

// maxIdentifiers limits an agent's identifiers, in bytes.
const maxIdentifiers = 4 << 10

// agentInfo is an agent's own data. It is not trusted: the credential decides which member the
// agent serves.
type agentInfo struct {
	// id distinguishes streams of one agent from those of another.
	id string
	// hosts are the names under which it wants to be asked.
	hosts    []string
	extended bool
}

// parseAgentInfo reads an agent's metadata. Identifiers of unknown kinds are ignored, as upstream
// does.
func parseAgentInfo(md metadata.MD) (agentInfo, error) {
	ids := md.Get(headerAgentID)
	if len(ids) != 1 || ids[0] == "" || len(ids[0]) > maxText {
		return agentInfo{}, fmt.Errorf("an agent sends one agentID of 1 to %d bytes", maxText)
	}
	info := agentInfo{id: printable(ids[0])}
	identifiers := md.Get(headerAgentIdentifiers)
	if len(identifiers) > 1 {
		return agentInfo{}, fmt.Errorf("an agent sends agentIdentifiers once, not %d times", len(identifiers))
	}
	if len(identifiers) == 1 {
		if len(identifiers[0]) > maxIdentifiers {
			return agentInfo{}, fmt.Errorf("an agent's agentIdentifiers have at most %d bytes", maxIdentifiers)
		}
		values, err := url.ParseQuery(identifiers[0])
		if err != nil {
			return agentInfo{}, fmt.Errorf("an agent's agentIdentifiers are not of the form host=a&ipv4=b")
		}
		info.hosts = values["host"]
	}
	if v := md.Get(headerExtensions); len(v) == 1 && v[0] == extensions {
		info.extended = true
	}
	return info, nil
}

// serverInfo is a server's own data.
type serverInfo struct {
	id string
	// count is how many servers an agent should be connected to.
	count    int
	extended bool
}

// maxServers limits the number of servers that an agent accepts.
const maxServers = 256

func (s serverInfo) metadata() metadata.MD {
	md := metadata.Pairs(headerServerID, s.id, headerServerCount, strconv.Itoa(s.count))
	if s.extended {
		md.Set(headerExtensions, extensions)
	}
	return md
}

func parseServerInfo(md metadata.MD) (serverInfo, error) {
	ids, counts := md.Get(headerServerID), md.Get(headerServerCount)
	if len(ids) != 1 || ids[0] == "" || len(ids[0]) > maxText {
		return serverInfo{}, fmt.Errorf("a server sends one serverID of 1 to %d bytes", maxText)
	}
	if len(counts) != 1 {
		return serverInfo{}, fmt.Errorf("a server sends one serverCount, not %d", len(counts))
	}
	count, err := strconv.Atoi(counts[0])
	if err != nil || count < 1 || count > maxServers {
		return serverInfo{}, fmt.Errorf("a serverCount is a number from 1 to %d", maxServers)
	}
	v := md.Get(headerExtensions)
	return serverInfo{id: printable(ids[0]), count: count, extended: len(v) == 1 && v[0] == extensions}, nil
}

// streamDesc describes a method that streams in both directions.
func streamDesc(name string, handler grpc.StreamHandler) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, Handler: handler, ServerStreams: true, ClientStreams: true}
}

// service describes a service of one method; its name has no package, like upstream's.
func service(name, method string, handle func(grpc.ServerStream) error) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: name,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{streamDesc(method, func(_ any, stream grpc.ServerStream) error {
			return handle(stream)
		})},
	}
}
